//! A rendered reply: the bytes of each event and what they are, so that faults and gates find their place.

use bytes::Bytes;

use crate::script::ErrorSpec;

/// What a piece of a streamed reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Opens the stream.
    Preamble,
    /// Carries content.
    Word,
    /// Neither content nor an end.
    Between,
    /// Says why the reply ends.
    Finish,
    /// Ends the stream.
    Terminal,
}

/// One event.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub mark: Mark,
    pub bytes: Bytes,
}

impl Piece {
    pub(crate) fn new(mark: Mark, bytes: impl Into<Bytes>) -> Self {
        Self { mark, bytes: bytes.into() }
    }
}

/// A refusal of a request, not yet in a dialect.
#[derive(Debug, Clone)]
pub(crate) struct Refused {
    pub status: u16,
    pub spec: Box<ErrorSpec>,
}

impl Refused {
    pub(crate) fn new(status: u16, message: impl Into<String>) -> Self {
        let spec = ErrorSpec { status: Some(status), message: Some(message.into()), ..ErrorSpec::default() };
        Self { status, spec: Box::new(spec) }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(crate) fn code(mut self, code: &str) -> Self {
        self.spec.code = Some(code.to_owned());
        self
    }

    pub(crate) fn param(mut self, param: impl Into<String>) -> Self {
        self.spec.param = Some(param.into());
        self
    }
}
