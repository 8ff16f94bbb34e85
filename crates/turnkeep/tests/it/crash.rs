//! The real binary, killed without a warning in the middle of a turn: the next start closes what it left open.

use crate::support::binary;
use crate::support::client::Client;
use crate::support::dialects::streamed;
use crate::support::world::{Plan, ledger};
use crate::support::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_was_under_way_when_the_process_was_killed_is_closed_as_interrupted() {
    for (number, pair) in streamed().into_iter().enumerate() {
        let rule = Rule { text: Some("one two three".into()), gate: Some("held".into()), ..Rule::default() };
        // Killed before the upstream has answered, or in the middle of its answer.
        let gate_at = (number % 2 == 1).then_some(Point::AfterWords(2));
        let lab = lab([Rule { gate_at, ..rule }]).await;
        let folder = tempfile::tempdir().unwrap();
        let plan = Plan::over([Up::at(pair.upstream, &lab)]);
        let (mut child, addr) = binary::serve(&plan, folder.path(), None).await;
        let mut client = Client::tcp(addr).await;
        client.ask(pair).await;
        soon(lab.wait_at_gate("held", 1)).await;
        child.kill().await.unwrap();
        soon(lab.wait_aborted(1)).await;
        client.until_closed().await;
        let left = ledger(folder.path()).await;
        assert_eq!((left.len(), &left[0].closed), (1, &None), "dispatched, so written down before");

        let world = World::in_folder(&plan, folder).await;
        assert_eq!(world.recovered, 1);
        let entries = world.into_ledger().await;
        assert_eq!(entries.len(), 1);
        let closed = entries[0].closed.as_ref().unwrap();
        assert_eq!((closed.outcome.as_str(), closed.exact), ("interrupted", false));
        assert_eq!(closed.usage.input, entries[0].estimated_input);
        assert_eq!(closed.usage.output, entries[0].estimated_output);
        assert!(closed.usage.output > 0, "what it had reserved is what it is charged");
        assert!(closed.usage.input > 0);
    }
}
