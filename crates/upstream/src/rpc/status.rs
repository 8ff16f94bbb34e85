//! gRPC's status beyond its number: the message's percent encoding, and the wait in its details.

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use http::HeaderValue;
use prost::Message;
use std::time::Duration;
use turnkeep_dialect::windows::worth;

/// Binary headers are written unpadded and read either way.
const BINARY: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// `google.rpc.Status`, as far as it is read.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, Copy, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

impl Status {
    /// The wait that the details of an error ask for.
    pub(super) fn retry_delay(header: &HeaderValue) -> Option<Duration> {
        let bytes = BINARY.decode(header.as_bytes()).ok()?;
        let status = Status::decode(&bytes[..]).ok()?;
        let info = status.details.iter().find(|detail| detail.type_url.ends_with("/google.rpc.RetryInfo"))?;
        let delay = RetryInfo::decode(&info.value[..]).ok()?.retry_delay?;
        let seconds = u64::try_from(delay.seconds).ok()?;
        let nanos = u32::try_from(delay.nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
        worth(Duration::new(seconds, nanos))
    }
}

/// A `grpc-message`. What is no encoding stands for itself.
pub(super) fn percent_decoded(raw: &[u8]) -> String {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| byte == b'%');
        let decoded = digits.and_then(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
        match decoded {
            Some(decoded) => {
                out.push(decoded);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_percent_decoded_and_what_is_no_encoding_stays() {
        for (raw, text) in [("a%20b", "a b"), ("%E2%82%AC", "€"), ("100%", "100%"), ("%zz%4", "%zz%4"), ("%+1", "%+1")]
        {
            assert_eq!(percent_decoded(raw.as_bytes()), text);
        }
        assert_eq!(percent_decoded(b"%ff"), "\u{fffd}");
    }

    fn details(seconds: i64, nanos: i32) -> Vec<u8> {
        let value = RetryInfo { retry_delay: Some(Delay { seconds, nanos }) }.encode_to_vec();
        let detail = Detail { type_url: "type.googleapis.com/google.rpc.RetryInfo".into(), value };
        Status { details: vec![detail] }.encode_to_vec()
    }

    #[test]
    fn a_wait_in_the_details_of_nothing_or_of_ages_is_none() {
        for (seconds, nanos) in [(0, 0), (-1, 0), (i64::MAX, 0), (1, -1), (1, 1_000_000_000)] {
            let header = base64::engine::general_purpose::STANDARD.encode(details(seconds, nanos));
            let header = HeaderValue::try_from(header).unwrap();
            assert_eq!(Status::retry_delay(&header), None, "{seconds} s and {nanos} ns");
        }
    }

    #[test]
    fn the_wait_in_the_details_is_read_padded_or_not() {
        let bytes = details(3, 500_000_000);
        let unpadded = base64::engine::general_purpose::STANDARD_NO_PAD.encode(&bytes);
        let padded = base64::engine::general_purpose::STANDARD.encode(&bytes);
        for text in [unpadded, padded] {
            let header = HeaderValue::try_from(text).unwrap();
            assert_eq!(Status::retry_delay(&header), Some(Duration::from_millis(3500)));
        }
        assert_eq!(Status::retry_delay(&HeaderValue::from_static("!")), None);
    }
}
