//! An estimate of the input tokens of a turn: a real tokeniser (OpenAI's `o200k_base`) over its texts, and the frames
//! that chat models put around them. Another vendor's tokeniser cuts the same text into some more or fewer.
//!
//! The time is linear in the text, whatever is in it: the tokeniser gets small pieces, so that a run of a million equal
//! letters is as cheap as prose; and only so much is counted, the rest of a larger request at the same rate.

use crate::turn::{Body, File, FileSource, Output, Part, ToolKind, Turn};
use tiktoken::CoreBpe;

/// The tokeniser.
const ENCODING: &str = "o200k_base";
/// Bytes of text that are counted; the rest is taken to have as many tokens a byte as these.
const COUNTED: usize = 512 << 10;
/// The longest piece that the tokeniser is given at once, in bytes; its cost grows faster than the length.
const PIECE: usize = 2 << 10;
/// Bytes of text that are taken for one token where there is no tokeniser.
const BYTES_PER_TOKEN: u64 = 4;
/// Tokens of one image, about that of a picture of 1092 by 1092 pixels.
const IMAGE: u64 = 1600;
/// Tokens of a file that is not text for each this many bytes of base 64: about 2000 for a page of a PDF.
const FILE_BYTES_PER_TOKEN: u64 = 48;
/// Tokens that mark a message's or a tool's beginning and end.
const FRAME: u64 = 4;

/// An estimate of the input tokens of a turn: its texts, arguments and schemas by the tokeniser, 1600 for an image, 4 for
/// each message, call and tool. Good to about a fifth for text; a guess for files that are not text.
pub fn estimate(turn: &Turn<'_>) -> u64 {
    let mut count =
        Count { bpe: tiktoken::get_encoding(ENCODING), left: COUNTED, counted: 0, beyond: 0, tokens: 0, other: 0 };
    for message in &turn.messages {
        count.other += FRAME;
        count.parts(&message.parts);
    }
    for tool in &turn.tools {
        count.other += FRAME;
        match &tool.kind {
            ToolKind::Function { name, description, schema, strict: _ } => {
                count.text(name);
                count.text(description.as_deref().unwrap_or_default());
                count.text(schema.unwrap_or_default());
            }
            ToolKind::Custom { name, description, format } => {
                count.text(name);
                count.text(description.as_deref().unwrap_or_default());
                count.text(format.as_deref().unwrap_or_default());
            }
            ToolKind::Hosted(kind) => count.text(kind),
        }
    }
    match &turn.output {
        Output::Text | Output::Json => {}
        Output::Schema { name: _, schema, strict: _ } => count.text(schema),
    }
    count.total()
}

/// The tokens of one text, by the same rules.
pub fn tokens(text: &str) -> u64 {
    let mut count =
        Count { bpe: tiktoken::get_encoding(ENCODING), left: COUNTED, counted: 0, beyond: 0, tokens: 0, other: 0 };
    count.text(text);
    count.total()
}

struct Count {
    bpe: Option<&'static CoreBpe>,
    /// Bytes that may still be counted.
    left: usize,
    /// Bytes that were.
    counted: u64,
    /// Bytes that were not.
    beyond: u64,
    tokens: u64,
    /// Tokens of what is no text.
    other: u64,
}

impl Count {
    fn text(&mut self, text: &str) {
        let Some(bpe) = self.bpe else {
            self.tokens += (text.len() as u64).div_ceil(BYTES_PER_TOKEN);
            return;
        };
        let mut rest = text;
        while !rest.is_empty() {
            if self.left == 0 {
                self.beyond += rest.len() as u64;
                return;
            }
            let (piece, after) = cut(rest);
            self.tokens += bpe.count(piece) as u64;
            self.counted += piece.len() as u64;
            self.left = self.left.saturating_sub(piece.len());
            rest = after;
        }
    }

    fn parts(&mut self, parts: &[Part<'_>]) {
        for part in parts {
            match &part.body {
                Body::Text(said) | Body::Refusal(said) | Body::RedactedThinking(said) => self.text(said),
                Body::Thinking { text, signature: _ } => self.text(text),
                Body::Image(_) => self.other += IMAGE,
                Body::File(File { source: FileSource::Plain(text), .. }) => self.text(text),
                Body::File(File { source: FileSource::Data(data), .. }) => {
                    self.other += (data.len() as u64).div_ceil(FILE_BYTES_PER_TOKEN);
                }
                Body::File(File { source: FileSource::Url(_), .. }) => self.other += IMAGE,
                Body::ToolCall { id: _, name, arguments } => {
                    self.other += FRAME;
                    self.text(name);
                    self.text(arguments);
                }
                Body::ToolResult { id: _, content, is_error: _ } => {
                    self.other += FRAME;
                    self.parts(content);
                }
                Body::Other(_) => {}
            }
        }
    }

    fn total(&self) -> u64 {
        let beyond = u128::from(self.beyond) * u128::from(self.tokens) / u128::from(self.counted.max(1));
        self.tokens.saturating_add(self.other).saturating_add(u64::try_from(beyond).unwrap_or(u64::MAX))
    }
}

/// The first piece of a text, cut before a space where there is one near, so that no word is cut.
fn cut(text: &str) -> (&str, &str) {
    if text.len() <= PIECE {
        return (text, "");
    }
    let most = text.floor_char_boundary(PIECE);
    let (head, _) = text.split_at(most);
    let space = head.rfind(' ').filter(|at| *at > PIECE / 2);
    text.split_at(space.unwrap_or(most))
}
