//! The 429s of the stub, each a model of its own: what the reply says decides how long the gateway leaves the account
//! alone, and so how many attempts a turn makes.

use crate::h1::Conn;
use anyhow::{Context, Result};
use bytes::Bytes;
use std::net::SocketAddr;
use tokio::net::TcpStream;

/// Where the stub tells how many attempts it has refused.
pub const COUNT_PATH: &str = "/refused";

/// How an attempt is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Without a word on when or why.
    Bare,
    /// With the window that is used up and its reset, half a minute away.
    Window,
    /// With a wait of a second, which a gateway may sit out.
    Soon,
    /// With a used-up window that is open again after a millisecond, so that the upstream is really asked every time.
    Flood,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Refusal; 4] = [Refusal::Bare, Refusal::Window, Refusal::Soon, Refusal::Flood];

    /// The model that is refused so.
    pub fn model(self) -> &'static str {
        match self {
            Refusal::Bare => "refused-bare",
            Refusal::Window => "refused-window",
            Refusal::Soon => "refused-soon",
            Refusal::Flood => "refused-flood",
        }
    }

    /// In the report's words.
    pub fn label(self) -> &'static str {
        match self {
            Refusal::Bare => "nothing",
            Refusal::Window => "window used up, `retry-after: 30`",
            Refusal::Soon => "`retry-after: 1`",
            Refusal::Flood => "window used up, open again in 1 ms",
        }
    }

    /// The whole answer.
    pub fn answer(self) -> Bytes {
        const BODY: &str = r#"{"error":{"message":"Rate limit reached for instant in organization org-bench on requests per min (RPM): Limit 500, Used 500, Requested 1. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#;
        let headers = match self {
            Refusal::Bare => "",
            Refusal::Window => {
                "retry-after: 30\r\nx-ratelimit-limit-requests: 500\r\nx-ratelimit-remaining-requests: 0\r\n\
                 x-ratelimit-reset-requests: 30s\r\n"
            }
            Refusal::Soon => "retry-after: 1\r\n",
            Refusal::Flood => {
                "retry-after-ms: 1\r\nx-ratelimit-limit-requests: 500\r\nx-ratelimit-remaining-requests: 0\r\n\
                 x-ratelimit-reset-requests: 1ms\r\n"
            }
        };
        Bytes::from(format!(
            "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n{headers}content-length: {}\r\n\r\n{BODY}",
            BODY.len()
        ))
    }
}

/// How many attempts the stub at `stub` has refused since it was started.
pub async fn count(stub: SocketAddr) -> Result<u64> {
    let mut conn = Conn::new(TcpStream::connect(stub).await?)?;
    conn.write(format!("GET {COUNT_PATH} HTTP/1.1\r\nhost: stub\r\nconnection: close\r\n\r\n").as_bytes()).await?;
    let head = conn.head().await?.context("the stub closed")?;
    let mut body = Vec::new();
    let collect = |piece: &[u8]| {
        body.extend_from_slice(piece);
        true
    };
    conn.body(&head, collect).await?;
    String::from_utf8_lossy(&body).trim().parse().context("the stub's count")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_a_framed_429_with_a_json_error() {
        for refusal in Refusal::ALL {
            let answer = String::from_utf8(refusal.answer().to_vec()).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with("HTTP/1.1 429 "), "{head}");
            assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
            assert!(serde_json::from_str::<serde_json::Value>(body).unwrap()["error"]["code"] == "rate_limit_exceeded");
        }
    }
}
