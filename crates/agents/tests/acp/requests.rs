//! What an agent asks of its client.

use crate::world::World;
use turnkeep_agents::acp::Permissions;

#[tokio::test]
async fn permissions_are_answered_by_the_operators_word() {
    for (permissions, kind, chosen) in [
        (Permissions::Deny, "read", "id-reject_once"),
        (Permissions::AllowRead, "read", "id-allow_once"),
        (Permissions::AllowRead, "execute", "id-reject_once"),
        (Permissions::Allow, "execute", "id-allow_once"),
    ] {
        let world = World::with(&[], |spec| spec.permissions = permissions);
        assert_eq!(world.turn(&format!("permission {kind}"), None).await.text, chosen, "{permissions:?} {kind}");
    }
}

#[tokio::test]
async fn files_terminals_and_unknown_methods_are_refused_and_the_turn_goes_on() {
    let world = World::with(&[], |spec| spec.permissions = Permissions::Allow);
    for method in ["fs/read_text_file", "fs/write_text_file", "terminal/create", "elicitation/create", "_of/next_year"]
    {
        let answer = world.turn(&format!("ask {method}\ncancel-request\nsay !"), None).await;
        assert_eq!((answer.text.as_str(), answer.fault), ("-32601!", None), "{method}");
    }
    let capabilities = &world.heard("initialize")[0]["clientCapabilities"];
    assert_eq!(capabilities["fs"]["readTextFile"], false);
    assert_eq!(capabilities["terminal"], false);
}
