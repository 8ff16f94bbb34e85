//! The canonical turn: what a request asks for, in no dialect. It borrows from the body it was read from, so that a
//! translated turn copies a text only where an escape forces it.
//!
//! Only translated routes and the keys of later lookups build it; a same-dialect turn keeps its bytes.

use std::borrow::Cow;

/// A text that is borrowed from the request where it can be.
pub type Text<'a> = Cow<'a, str>;

/// Where in the client's body a piece of the turn came from, to name it in an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The system prompt outside the messages.
    System,
    /// A whole message.
    Message(u32),
    /// Part `part` of a message's content.
    Content {
        /// The message's index.
        message: u32,
        /// The part's index.
        part: u32,
    },
    /// A call in a message's `tool_calls`.
    Call {
        /// The message's index.
        message: u32,
        /// The call's index.
        call: u32,
    },
    /// A piece inside a tool result.
    Inner {
        /// The message's index.
        message: u32,
        /// The part's index.
        part: u32,
        /// The index within the part's own content.
        inner: u32,
    },
    /// The `instructions` of a Responses request.
    Instructions,
    /// A whole item of a Responses `input`.
    Item(u32),
    /// A part of an item's `content`.
    ItemContent {
        /// The item's index.
        item: u32,
        /// The part's index.
        part: u32,
    },
    /// A part of an item's `output`.
    ItemOutput {
        /// The item's index.
        item: u32,
        /// The part's index.
        part: u32,
    },
    /// A content of a Gemini request.
    Contents(u32),
    /// A part of it.
    ContentsPart {
        /// The content's index.
        content: u32,
        /// The part's index.
        part: u32,
    },
    /// A part inside its `functionResponse`.
    ContentsInner {
        /// The content's index.
        content: u32,
        /// The part's index.
        part: u32,
        /// The index within the response's own parts.
        inner: u32,
    },
}

impl At {
    /// The JSON path.
    pub fn path(self) -> String {
        match self {
            At::System => "system".into(),
            At::Message(message) => format!("messages[{message}]"),
            At::Content { message, part } => format!("messages[{message}].content[{part}]"),
            At::Call { message, call } => format!("messages[{message}].tool_calls[{call}]"),
            At::Inner { message, part, inner } => format!("messages[{message}].content[{part}].content[{inner}]"),
            At::Instructions => "instructions".into(),
            At::Item(item) => format!("input[{item}]"),
            At::ItemContent { item, part } => format!("input[{item}].content[{part}]"),
            At::ItemOutput { item, part } => format!("input[{item}].output[{part}]"),
            At::Contents(content) => format!("contents[{content}]"),
            At::ContentsPart { content, part } => format!("contents[{content}].parts[{part}]"),
            At::ContentsInner { content, part, inner } => {
                format!("contents[{content}].parts[{part}].functionResponse.parts[{inner}]")
            }
        }
    }
}

/// A request for one answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn<'a> {
    /// The model's name as the client gave it.
    pub model: Text<'a>,
    /// The answer is wanted as a stream.
    pub stream: bool,
    /// A streamed Chat client asked for the usage chunk.
    pub stream_usage: bool,
    /// Every message in order, system messages too. A system prompt outside the messages comes first.
    pub messages: Vec<Message<'a>>,
    /// Tools the model may call.
    pub tools: Vec<Tool<'a>>,
    /// Which it must call.
    pub tool_choice: Option<ToolChoice<'a>>,
    /// Whether it may call several at once; `None` is the dialect's default, which is yes.
    pub parallel_tools: Option<bool>,
    /// The most tokens of output.
    pub max_output: Option<u64>,
    /// As written in the request, to keep its digits.
    pub temperature: Option<&'a str>,
    /// As written.
    pub top_p: Option<&'a str>,
    /// As written.
    pub top_k: Option<&'a str>,
    /// As written.
    pub seed: Option<&'a str>,
    /// As written.
    pub presence_penalty: Option<&'a str>,
    /// As written.
    pub frequency_penalty: Option<&'a str>,
    /// Texts that end the answer.
    pub stop: Vec<Text<'a>>,
    /// The form of the answer.
    pub output: Output<'a>,
    /// How much to think.
    pub reasoning: Reasoning<'a>,
    /// How many words: `low`, `medium` or `high`.
    pub verbosity: Option<Text<'a>>,
    /// The client's name for its user.
    pub user: Option<Text<'a>>,
    /// What the client groups requests by for the provider's prompt cache (`prompt_cache_key`).
    pub cache_key: Option<Text<'a>>,
    /// The client's own names of tools whose canonical name is another one.
    pub renamed: Vec<Renamed>,
    /// Fields of the client's dialect that have no canonical place and are hints: dropped on translation, and named.
    pub hints: Vec<String>,
}

impl Turn<'_> {
    /// The index of the first message behind the assistant's last one; 0 where there is none of its.
    pub fn behind_last_answer(&self) -> usize {
        let last = self.messages.iter().rposition(|message| message.role == Role::Assistant);
        last.map_or(0, |last| last + 1)
    }
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The operator of the client (`system`, `developer`).
    System,
    /// The user; tool results too.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// Where it came from.
    pub at: At,
    /// What is said, in order.
    pub parts: Vec<Part<'a>>,
}

/// One piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Part<'a> {
    /// What it is.
    pub body: Body<'a>,
    /// Where it came from.
    pub at: At,
    /// It carried a prompt-cache mark (raw JSON), which only its own dialect understands.
    pub cache: Option<&'a str>,
}

/// What a piece of a message is.
#[derive(Clone, Debug, PartialEq)]
pub enum Body<'a> {
    /// Text.
    Text(Text<'a>),
    /// An image.
    Image(Image<'a>),
    /// A document or a sound.
    File(File<'a>),
    /// The model's call of a tool. A free-text (custom) tool is canonically a function whose one argument is the string
    /// `input`.
    ToolCall {
        /// Its id, as the client knows it.
        id: Text<'a>,
        /// The tool's name.
        name: Text<'a>,
        /// The arguments as JSON text; empty when the model gave none. May be invalid when a client replays it so.
        arguments: Text<'a>,
    },
    /// What a tool answered.
    ToolResult {
        /// The call's id.
        id: Text<'a>,
        /// Texts and images.
        content: Vec<Part<'a>>,
        /// The tool failed.
        is_error: bool,
    },
    /// The model's thinking. Without a text it carries the proof of what follows it: Gemini signs a call, and the
    /// signature stands in an empty thinking right before the call.
    Thinking {
        /// The text; may be empty.
        text: Text<'a>,
        /// The provider's opaque proof of it, in the form of [`crate::envelope`].
        signature: Option<Text<'a>>,
    },
    /// Thinking that only the provider can read, in the form of [`crate::envelope`].
    RedactedThinking(Text<'a>),
    /// The model's refusal in words.
    Refusal(Text<'a>),
    /// Content of the client's dialect that has no canonical form; translation refuses it by this name.
    Other(String),
}

impl Body<'_> {
    /// What it is, in words, for an error about a place where it cannot stand.
    pub fn misplaced(&self) -> String {
        match self {
            Body::Other(name) => format!("content of the type `{name}`"),
            Body::Image(_) => "an image in this place".into(),
            Body::File(_) => "a file in this place".into(),
            Body::ToolCall { .. } => "a tool call outside an assistant message".into(),
            Body::ToolResult { .. } => "a tool result outside a user message".into(),
            Body::Thinking { .. } | Body::RedactedThinking(_) => "thinking outside an assistant message".into(),
            Body::Refusal(_) => "a refusal outside an assistant message".into(),
            Body::Text(_) => "text in this place".into(),
        }
    }
}

/// An image and where its bytes are.
#[derive(Clone, Debug, PartialEq)]
pub enum Image<'a> {
    /// The bytes in base 64.
    Data {
        /// As `image/png`.
        media_type: Text<'a>,
        /// Base 64.
        data: Text<'a>,
    },
    /// An address.
    Url(Text<'a>),
}

/// A document or a sound and where its bytes are.
#[derive(Clone, Debug, PartialEq)]
pub struct File<'a> {
    /// As `application/pdf`, `text/plain`, `audio/wav`; `None` where the client did not say.
    pub media_type: Option<Text<'a>>,
    /// Its name.
    pub name: Option<Text<'a>>,
    /// Its bytes.
    pub source: FileSource<'a>,
}

/// Where a file's bytes are. A provider's own file id is not portable: it is [`Body::Other`].
#[derive(Clone, Debug, PartialEq)]
pub enum FileSource<'a> {
    /// The bytes in base 64.
    Data(Text<'a>),
    /// An address.
    Url(Text<'a>),
    /// The text itself.
    Plain(Text<'a>),
}

/// A tool that its client knows by another name, or in another form, than the turn does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name in the turn.
    pub canonical: String,
    /// How the client knows it.
    pub client: ClientTool,
}

/// How a client knows a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientTool {
    /// Its name.
    pub name: String,
    /// The Responses namespace that it is in.
    pub namespace: Option<String>,
    /// It takes free text, not JSON.
    pub custom: bool,
}

/// A tool that the client runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool<'a> {
    /// The tool's index in the request.
    pub index: u32,
    /// Function tools can be translated; anything else is refused by its kind.
    pub kind: ToolKind<'a>,
}

/// The kind of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolKind<'a> {
    /// A function with a JSON schema.
    Function {
        /// Its name.
        name: Text<'a>,
        /// What it does.
        description: Option<Text<'a>>,
        /// The schema of its arguments, as JSON text; `None` means no arguments.
        schema: Option<&'a str>,
        /// Arguments must match the schema exactly.
        strict: Option<bool>,
    },
    /// A tool that takes free text. A target without such tools gets a function with the one string `input`.
    Custom {
        /// Its name.
        name: Text<'a>,
        /// What it does.
        description: Option<Text<'a>>,
        /// The form of the text (a grammar), as raw JSON in Responses' own, flat form.
        format: Option<Text<'a>>,
    },
    /// A tool of the provider's own, by its type.
    Hosted(String),
}

/// Which tool must be called.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolChoice<'a> {
    /// The model decides.
    Auto,
    /// None.
    None,
    /// At least one.
    Any,
    /// This one.
    Named(Text<'a>),
    /// Only these.
    Allowed {
        /// One of them must be called.
        required: bool,
        /// Their names.
        names: Vec<Text<'a>>,
    },
    /// A choice of the client's dialect without canonical form.
    Other(String),
}

impl ToolChoice<'_> {
    /// The choice that one of OpenAI's words means.
    pub(crate) fn of_word(word: &str) -> Self {
        match word {
            "auto" => ToolChoice::Auto,
            "none" => ToolChoice::None,
            "required" => ToolChoice::Any,
            other => ToolChoice::Other(other.to_owned()),
        }
    }
}

/// The form of the answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Output<'a> {
    /// Free text.
    #[default]
    Text,
    /// Any JSON.
    Json,
    /// JSON of this schema.
    Schema {
        /// Its name.
        name: Option<Text<'a>>,
        /// The schema as JSON text.
        schema: &'a str,
        /// Exactly.
        strict: Option<bool>,
    },
}

/// How much to think.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reasoning<'a> {
    /// Whether; `None` is the model's own default.
    pub mode: Option<Thinking>,
    /// A level in the client's words (`low`, `high`, …).
    pub effort: Option<Text<'a>>,
}

/// Whether the model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thinking {
    /// As much as it sees fit.
    Adaptive,
    /// With at most this many tokens.
    Budget(u64),
    /// Not at all.
    Off,
}
