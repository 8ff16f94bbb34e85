// Written by `cargo xtask proto` from proto/; do not edit.

impl serde::Serialize for BlockStart {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.block != 0 {
            len += 1;
        }
        if self.kind.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.BlockStart", len)?;
        if self.block != 0 {
            struct_ser.serialize_field("block", &self.block)?;
        }
        if let Some(v) = self.kind.as_ref() {
            match v {
                block_start::Kind::Text(v) => {
                    struct_ser.serialize_field("text", v)?;
                }
                block_start::Kind::Thinking(v) => {
                    struct_ser.serialize_field("thinking", v)?;
                }
                block_start::Kind::RedactedThinking(v) => {
                    struct_ser.serialize_field("redactedThinking", v)?;
                }
                block_start::Kind::ToolCall(v) => {
                    struct_ser.serialize_field("toolCall", v)?;
                }
                block_start::Kind::Refusal(v) => {
                    struct_ser.serialize_field("refusal", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for BlockStart {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "block",
            "text",
            "thinking",
            "redacted_thinking",
            "redactedThinking",
            "tool_call",
            "toolCall",
            "refusal",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Block,
            Text,
            Thinking,
            RedactedThinking,
            ToolCall,
            Refusal,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "block" => Ok(GeneratedField::Block),
                            "text" => Ok(GeneratedField::Text),
                            "thinking" => Ok(GeneratedField::Thinking),
                            "redactedThinking" | "redacted_thinking" => Ok(GeneratedField::RedactedThinking),
                            "toolCall" | "tool_call" => Ok(GeneratedField::ToolCall),
                            "refusal" => Ok(GeneratedField::Refusal),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = BlockStart;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.BlockStart")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<BlockStart, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut block__ = None;
                let mut kind__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Block => {
                            if block__.is_some() {
                                return Err(serde::de::Error::duplicate_field("block"));
                            }
                            block__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Text => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(block_start::Kind::Text)
;
                        }
                        GeneratedField::Thinking => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("thinking"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(block_start::Kind::Thinking)
;
                        }
                        GeneratedField::RedactedThinking => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("redactedThinking"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(block_start::Kind::RedactedThinking)
;
                        }
                        GeneratedField::ToolCall => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("toolCall"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(block_start::Kind::ToolCall)
;
                        }
                        GeneratedField::Refusal => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("refusal"));
                            }
                            kind__ = map_.next_value::<::std::option::Option<_>>()?.map(block_start::Kind::Refusal)
;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(BlockStart {
                    block: block__.unwrap_or_default(),
                    kind: kind__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.BlockStart", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for BlockStop {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.block != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.BlockStop", len)?;
        if self.block != 0 {
            struct_ser.serialize_field("block", &self.block)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for BlockStop {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "block",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Block,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "block" => Ok(GeneratedField::Block),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = BlockStop;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.BlockStop")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<BlockStop, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut block__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Block => {
                            if block__.is_some() {
                                return Err(serde::de::Error::duplicate_field("block"));
                            }
                            block__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(BlockStop {
                    block: block__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.BlockStop", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ChatEvent {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.event.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.ChatEvent", len)?;
        if let Some(v) = self.event.as_ref() {
            match v {
                chat_event::Event::Start(v) => {
                    struct_ser.serialize_field("start", v)?;
                }
                chat_event::Event::BlockStart(v) => {
                    struct_ser.serialize_field("blockStart", v)?;
                }
                chat_event::Event::Delta(v) => {
                    struct_ser.serialize_field("delta", v)?;
                }
                chat_event::Event::BlockStop(v) => {
                    struct_ser.serialize_field("blockStop", v)?;
                }
                chat_event::Event::Finish(v) => {
                    struct_ser.serialize_field("finish", v)?;
                }
                chat_event::Event::Usage(v) => {
                    struct_ser.serialize_field("usage", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ChatEvent {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "start",
            "block_start",
            "blockStart",
            "delta",
            "block_stop",
            "blockStop",
            "finish",
            "usage",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Start,
            BlockStart,
            Delta,
            BlockStop,
            Finish,
            Usage,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "start" => Ok(GeneratedField::Start),
                            "blockStart" | "block_start" => Ok(GeneratedField::BlockStart),
                            "delta" => Ok(GeneratedField::Delta),
                            "blockStop" | "block_stop" => Ok(GeneratedField::BlockStop),
                            "finish" => Ok(GeneratedField::Finish),
                            "usage" => Ok(GeneratedField::Usage),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ChatEvent;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.ChatEvent")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ChatEvent, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut event__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Start => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("start"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(chat_event::Event::Start)
;
                        }
                        GeneratedField::BlockStart => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blockStart"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(chat_event::Event::BlockStart)
;
                        }
                        GeneratedField::Delta => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("delta"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(chat_event::Event::Delta)
;
                        }
                        GeneratedField::BlockStop => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("blockStop"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(chat_event::Event::BlockStop)
;
                        }
                        GeneratedField::Finish => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("finish"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(chat_event::Event::Finish)
;
                        }
                        GeneratedField::Usage => {
                            if event__.is_some() {
                                return Err(serde::de::Error::duplicate_field("usage"));
                            }
                            event__ = map_.next_value::<::std::option::Option<_>>()?.map(chat_event::Event::Usage)
;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ChatEvent {
                    event: event__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.ChatEvent", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ChatRequest {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.model.is_empty() {
            len += 1;
        }
        if !self.messages.is_empty() {
            len += 1;
        }
        if !self.tools.is_empty() {
            len += 1;
        }
        if self.tool_choice.is_some() {
            len += 1;
        }
        if self.parallel_tool_calls.is_some() {
            len += 1;
        }
        if self.max_output_tokens.is_some() {
            len += 1;
        }
        if self.sampling.is_some() {
            len += 1;
        }
        if !self.stop.is_empty() {
            len += 1;
        }
        if self.output.is_some() {
            len += 1;
        }
        if self.reasoning.is_some() {
            len += 1;
        }
        if self.verbosity.is_some() {
            len += 1;
        }
        if self.user.is_some() {
            len += 1;
        }
        if self.cache_key.is_some() {
            len += 1;
        }
        if self.stream {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.ChatRequest", len)?;
        if !self.model.is_empty() {
            struct_ser.serialize_field("model", &self.model)?;
        }
        if !self.messages.is_empty() {
            struct_ser.serialize_field("messages", &self.messages)?;
        }
        if !self.tools.is_empty() {
            struct_ser.serialize_field("tools", &self.tools)?;
        }
        if let Some(v) = self.tool_choice.as_ref() {
            struct_ser.serialize_field("toolChoice", v)?;
        }
        if let Some(v) = self.parallel_tool_calls.as_ref() {
            struct_ser.serialize_field("parallelToolCalls", v)?;
        }
        if let Some(v) = self.max_output_tokens.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("maxOutputTokens", ToString::to_string(&v).as_str())?;
        }
        if let Some(v) = self.sampling.as_ref() {
            struct_ser.serialize_field("sampling", v)?;
        }
        if !self.stop.is_empty() {
            struct_ser.serialize_field("stop", &self.stop)?;
        }
        if let Some(v) = self.output.as_ref() {
            struct_ser.serialize_field("output", v)?;
        }
        if let Some(v) = self.reasoning.as_ref() {
            struct_ser.serialize_field("reasoning", v)?;
        }
        if let Some(v) = self.verbosity.as_ref() {
            struct_ser.serialize_field("verbosity", v)?;
        }
        if let Some(v) = self.user.as_ref() {
            struct_ser.serialize_field("user", v)?;
        }
        if let Some(v) = self.cache_key.as_ref() {
            struct_ser.serialize_field("cacheKey", v)?;
        }
        if self.stream {
            struct_ser.serialize_field("stream", &self.stream)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ChatRequest {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "model",
            "messages",
            "tools",
            "tool_choice",
            "toolChoice",
            "parallel_tool_calls",
            "parallelToolCalls",
            "max_output_tokens",
            "maxOutputTokens",
            "sampling",
            "stop",
            "output",
            "reasoning",
            "verbosity",
            "user",
            "cache_key",
            "cacheKey",
            "stream",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Model,
            Messages,
            Tools,
            ToolChoice,
            ParallelToolCalls,
            MaxOutputTokens,
            Sampling,
            Stop,
            Output,
            Reasoning,
            Verbosity,
            User,
            CacheKey,
            Stream,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "model" => Ok(GeneratedField::Model),
                            "messages" => Ok(GeneratedField::Messages),
                            "tools" => Ok(GeneratedField::Tools),
                            "toolChoice" | "tool_choice" => Ok(GeneratedField::ToolChoice),
                            "parallelToolCalls" | "parallel_tool_calls" => Ok(GeneratedField::ParallelToolCalls),
                            "maxOutputTokens" | "max_output_tokens" => Ok(GeneratedField::MaxOutputTokens),
                            "sampling" => Ok(GeneratedField::Sampling),
                            "stop" => Ok(GeneratedField::Stop),
                            "output" => Ok(GeneratedField::Output),
                            "reasoning" => Ok(GeneratedField::Reasoning),
                            "verbosity" => Ok(GeneratedField::Verbosity),
                            "user" => Ok(GeneratedField::User),
                            "cacheKey" | "cache_key" => Ok(GeneratedField::CacheKey),
                            "stream" => Ok(GeneratedField::Stream),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ChatRequest;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.ChatRequest")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ChatRequest, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut model__ = None;
                let mut messages__ = None;
                let mut tools__ = None;
                let mut tool_choice__ = None;
                let mut parallel_tool_calls__ = None;
                let mut max_output_tokens__ = None;
                let mut sampling__ = None;
                let mut stop__ = None;
                let mut output__ = None;
                let mut reasoning__ = None;
                let mut verbosity__ = None;
                let mut user__ = None;
                let mut cache_key__ = None;
                let mut stream__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Model => {
                            if model__.is_some() {
                                return Err(serde::de::Error::duplicate_field("model"));
                            }
                            model__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Messages => {
                            if messages__.is_some() {
                                return Err(serde::de::Error::duplicate_field("messages"));
                            }
                            messages__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Tools => {
                            if tools__.is_some() {
                                return Err(serde::de::Error::duplicate_field("tools"));
                            }
                            tools__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ToolChoice => {
                            if tool_choice__.is_some() {
                                return Err(serde::de::Error::duplicate_field("toolChoice"));
                            }
                            tool_choice__ = map_.next_value()?;
                        }
                        GeneratedField::ParallelToolCalls => {
                            if parallel_tool_calls__.is_some() {
                                return Err(serde::de::Error::duplicate_field("parallelToolCalls"));
                            }
                            parallel_tool_calls__ = map_.next_value()?;
                        }
                        GeneratedField::MaxOutputTokens => {
                            if max_output_tokens__.is_some() {
                                return Err(serde::de::Error::duplicate_field("maxOutputTokens"));
                            }
                            max_output_tokens__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Sampling => {
                            if sampling__.is_some() {
                                return Err(serde::de::Error::duplicate_field("sampling"));
                            }
                            sampling__ = map_.next_value()?;
                        }
                        GeneratedField::Stop => {
                            if stop__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stop"));
                            }
                            stop__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Output => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("output"));
                            }
                            output__ = map_.next_value()?;
                        }
                        GeneratedField::Reasoning => {
                            if reasoning__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reasoning"));
                            }
                            reasoning__ = map_.next_value()?;
                        }
                        GeneratedField::Verbosity => {
                            if verbosity__.is_some() {
                                return Err(serde::de::Error::duplicate_field("verbosity"));
                            }
                            verbosity__ = map_.next_value()?;
                        }
                        GeneratedField::User => {
                            if user__.is_some() {
                                return Err(serde::de::Error::duplicate_field("user"));
                            }
                            user__ = map_.next_value()?;
                        }
                        GeneratedField::CacheKey => {
                            if cache_key__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cacheKey"));
                            }
                            cache_key__ = map_.next_value()?;
                        }
                        GeneratedField::Stream => {
                            if stream__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stream"));
                            }
                            stream__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ChatRequest {
                    model: model__.unwrap_or_default(),
                    messages: messages__.unwrap_or_default(),
                    tools: tools__.unwrap_or_default(),
                    tool_choice: tool_choice__,
                    parallel_tool_calls: parallel_tool_calls__,
                    max_output_tokens: max_output_tokens__,
                    sampling: sampling__,
                    stop: stop__.unwrap_or_default(),
                    output: output__,
                    reasoning: reasoning__,
                    verbosity: verbosity__,
                    user: user__,
                    cache_key: cache_key__,
                    stream: stream__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.ChatRequest", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Delta {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.block != 0 {
            len += 1;
        }
        if self.delta.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Delta", len)?;
        if self.block != 0 {
            struct_ser.serialize_field("block", &self.block)?;
        }
        if let Some(v) = self.delta.as_ref() {
            match v {
                delta::Delta::Text(v) => {
                    struct_ser.serialize_field("text", v)?;
                }
                delta::Delta::Thinking(v) => {
                    struct_ser.serialize_field("thinking", v)?;
                }
                delta::Delta::Signature(v) => {
                    struct_ser.serialize_field("signature", v)?;
                }
                delta::Delta::Arguments(v) => {
                    struct_ser.serialize_field("arguments", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Delta {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "block",
            "text",
            "thinking",
            "signature",
            "arguments",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Block,
            Text,
            Thinking,
            Signature,
            Arguments,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "block" => Ok(GeneratedField::Block),
                            "text" => Ok(GeneratedField::Text),
                            "thinking" => Ok(GeneratedField::Thinking),
                            "signature" => Ok(GeneratedField::Signature),
                            "arguments" => Ok(GeneratedField::Arguments),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Delta;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Delta")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Delta, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut block__ = None;
                let mut delta__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Block => {
                            if block__.is_some() {
                                return Err(serde::de::Error::duplicate_field("block"));
                            }
                            block__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Text => {
                            if delta__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            delta__ = map_.next_value::<::std::option::Option<_>>()?.map(delta::Delta::Text);
                        }
                        GeneratedField::Thinking => {
                            if delta__.is_some() {
                                return Err(serde::de::Error::duplicate_field("thinking"));
                            }
                            delta__ = map_.next_value::<::std::option::Option<_>>()?.map(delta::Delta::Thinking);
                        }
                        GeneratedField::Signature => {
                            if delta__.is_some() {
                                return Err(serde::de::Error::duplicate_field("signature"));
                            }
                            delta__ = map_.next_value::<::std::option::Option<_>>()?.map(delta::Delta::Signature);
                        }
                        GeneratedField::Arguments => {
                            if delta__.is_some() {
                                return Err(serde::de::Error::duplicate_field("arguments"));
                            }
                            delta__ = map_.next_value::<::std::option::Option<_>>()?.map(delta::Delta::Arguments);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Delta {
                    block: block__.unwrap_or_default(),
                    delta: delta__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Delta", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for File {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.media_type.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if self.source.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.File", len)?;
        if !self.media_type.is_empty() {
            struct_ser.serialize_field("mediaType", &self.media_type)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if let Some(v) = self.source.as_ref() {
            match v {
                file::Source::Data(v) => {
                    #[allow(clippy::needless_borrow)]
                    #[allow(clippy::needless_borrows_for_generic_args)]
                    struct_ser.serialize_field("data", pbjson::private::base64::encode(&v).as_str())?;
                }
                file::Source::Url(v) => {
                    struct_ser.serialize_field("url", v)?;
                }
                file::Source::Text(v) => {
                    struct_ser.serialize_field("text", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for File {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "media_type",
            "mediaType",
            "name",
            "data",
            "url",
            "text",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MediaType,
            Name,
            Data,
            Url,
            Text,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "mediaType" | "media_type" => Ok(GeneratedField::MediaType),
                            "name" => Ok(GeneratedField::Name),
                            "data" => Ok(GeneratedField::Data),
                            "url" => Ok(GeneratedField::Url),
                            "text" => Ok(GeneratedField::Text),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = File;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.File")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<File, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut media_type__ = None;
                let mut name__ = None;
                let mut source__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MediaType => {
                            if media_type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mediaType"));
                            }
                            media_type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Data => {
                            if source__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            source__ = map_.next_value::<::std::option::Option<::pbjson::private::BytesDeserialize<_>>>()?.map(|x| file::Source::Data(x.0));
                        }
                        GeneratedField::Url => {
                            if source__.is_some() {
                                return Err(serde::de::Error::duplicate_field("url"));
                            }
                            source__ = map_.next_value::<::std::option::Option<_>>()?.map(file::Source::Url);
                        }
                        GeneratedField::Text => {
                            if source__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            source__ = map_.next_value::<::std::option::Option<_>>()?.map(file::Source::Text);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(File {
                    media_type: media_type__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    source: source__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.File", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Finish {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.reason != 0 {
            len += 1;
        }
        if self.stop_sequence.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Finish", len)?;
        if self.reason != 0 {
            let v = finish::Reason::try_from(self.reason)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.reason)))?;
            struct_ser.serialize_field("reason", &v)?;
        }
        if let Some(v) = self.stop_sequence.as_ref() {
            struct_ser.serialize_field("stopSequence", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Finish {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "reason",
            "stop_sequence",
            "stopSequence",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Reason,
            StopSequence,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "reason" => Ok(GeneratedField::Reason),
                            "stopSequence" | "stop_sequence" => Ok(GeneratedField::StopSequence),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Finish;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Finish")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Finish, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut reason__ = None;
                let mut stop_sequence__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Reason => {
                            if reason__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reason"));
                            }
                            reason__ = Some(map_.next_value::<finish::Reason>()? as i32);
                        }
                        GeneratedField::StopSequence => {
                            if stop_sequence__.is_some() {
                                return Err(serde::de::Error::duplicate_field("stopSequence"));
                            }
                            stop_sequence__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Finish {
                    reason: reason__.unwrap_or_default(),
                    stop_sequence: stop_sequence__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Finish", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for finish::Reason {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "REASON_UNSPECIFIED",
            Self::Stop => "REASON_STOP",
            Self::StopSequence => "REASON_STOP_SEQUENCE",
            Self::Length => "REASON_LENGTH",
            Self::ContextFull => "REASON_CONTEXT_FULL",
            Self::ToolCalls => "REASON_TOOL_CALLS",
            Self::Refusal => "REASON_REFUSAL",
            Self::Pause => "REASON_PAUSE",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for finish::Reason {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "REASON_UNSPECIFIED",
            "REASON_STOP",
            "REASON_STOP_SEQUENCE",
            "REASON_LENGTH",
            "REASON_CONTEXT_FULL",
            "REASON_TOOL_CALLS",
            "REASON_REFUSAL",
            "REASON_PAUSE",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = finish::Reason;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(finish::Reason::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(finish::Reason::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "REASON_UNSPECIFIED" => Ok(finish::Reason::Unspecified),
                    "REASON_STOP" => Ok(finish::Reason::Stop),
                    "REASON_STOP_SEQUENCE" => Ok(finish::Reason::StopSequence),
                    "REASON_LENGTH" => Ok(finish::Reason::Length),
                    "REASON_CONTEXT_FULL" => Ok(finish::Reason::ContextFull),
                    "REASON_TOOL_CALLS" => Ok(finish::Reason::ToolCalls),
                    "REASON_REFUSAL" => Ok(finish::Reason::Refusal),
                    "REASON_PAUSE" => Ok(finish::Reason::Pause),
                    _ => Ok(finish::Reason::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Image {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.media_type.is_empty() {
            len += 1;
        }
        if self.source.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Image", len)?;
        if !self.media_type.is_empty() {
            struct_ser.serialize_field("mediaType", &self.media_type)?;
        }
        if let Some(v) = self.source.as_ref() {
            match v {
                image::Source::Data(v) => {
                    #[allow(clippy::needless_borrow)]
                    #[allow(clippy::needless_borrows_for_generic_args)]
                    struct_ser.serialize_field("data", pbjson::private::base64::encode(&v).as_str())?;
                }
                image::Source::Url(v) => {
                    struct_ser.serialize_field("url", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Image {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "media_type",
            "mediaType",
            "data",
            "url",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            MediaType,
            Data,
            Url,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "mediaType" | "media_type" => Ok(GeneratedField::MediaType),
                            "data" => Ok(GeneratedField::Data),
                            "url" => Ok(GeneratedField::Url),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Image;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Image")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Image, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut media_type__ = None;
                let mut source__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::MediaType => {
                            if media_type__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mediaType"));
                            }
                            media_type__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Data => {
                            if source__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            source__ = map_.next_value::<::std::option::Option<::pbjson::private::BytesDeserialize<_>>>()?.map(|x| image::Source::Data(x.0));
                        }
                        GeneratedField::Url => {
                            if source__.is_some() {
                                return Err(serde::de::Error::duplicate_field("url"));
                            }
                            source__ = map_.next_value::<::std::option::Option<_>>()?.map(image::Source::Url);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Image {
                    media_type: media_type__.unwrap_or_default(),
                    source: source__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Image", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Message {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.role != 0 {
            len += 1;
        }
        if !self.parts.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Message", len)?;
        if self.role != 0 {
            let v = Role::try_from(self.role)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.role)))?;
            struct_ser.serialize_field("role", &v)?;
        }
        if !self.parts.is_empty() {
            struct_ser.serialize_field("parts", &self.parts)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Message {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "role",
            "parts",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Role,
            Parts,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "role" => Ok(GeneratedField::Role),
                            "parts" => Ok(GeneratedField::Parts),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Message;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Message")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Message, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut role__ = None;
                let mut parts__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Role => {
                            if role__.is_some() {
                                return Err(serde::de::Error::duplicate_field("role"));
                            }
                            role__ = Some(map_.next_value::<Role>()? as i32);
                        }
                        GeneratedField::Parts => {
                            if parts__.is_some() {
                                return Err(serde::de::Error::duplicate_field("parts"));
                            }
                            parts__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Message {
                    role: role__.unwrap_or_default(),
                    parts: parts__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Message", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for OutputForm {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.kind != 0 {
            len += 1;
        }
        if !self.json_schema.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if self.strict.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.OutputForm", len)?;
        if self.kind != 0 {
            let v = output_form::Kind::try_from(self.kind)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.kind)))?;
            struct_ser.serialize_field("kind", &v)?;
        }
        if !self.json_schema.is_empty() {
            struct_ser.serialize_field("jsonSchema", &self.json_schema)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if let Some(v) = self.strict.as_ref() {
            struct_ser.serialize_field("strict", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for OutputForm {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "kind",
            "json_schema",
            "jsonSchema",
            "name",
            "strict",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Kind,
            JsonSchema,
            Name,
            Strict,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "kind" => Ok(GeneratedField::Kind),
                            "jsonSchema" | "json_schema" => Ok(GeneratedField::JsonSchema),
                            "name" => Ok(GeneratedField::Name),
                            "strict" => Ok(GeneratedField::Strict),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = OutputForm;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.OutputForm")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<OutputForm, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut kind__ = None;
                let mut json_schema__ = None;
                let mut name__ = None;
                let mut strict__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Kind => {
                            if kind__.is_some() {
                                return Err(serde::de::Error::duplicate_field("kind"));
                            }
                            kind__ = Some(map_.next_value::<output_form::Kind>()? as i32);
                        }
                        GeneratedField::JsonSchema => {
                            if json_schema__.is_some() {
                                return Err(serde::de::Error::duplicate_field("jsonSchema"));
                            }
                            json_schema__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Strict => {
                            if strict__.is_some() {
                                return Err(serde::de::Error::duplicate_field("strict"));
                            }
                            strict__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(OutputForm {
                    kind: kind__.unwrap_or_default(),
                    json_schema: json_schema__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    strict: strict__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.OutputForm", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for output_form::Kind {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "KIND_UNSPECIFIED",
            Self::Text => "KIND_TEXT",
            Self::Json => "KIND_JSON",
            Self::JsonSchema => "KIND_JSON_SCHEMA",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for output_form::Kind {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "KIND_UNSPECIFIED",
            "KIND_TEXT",
            "KIND_JSON",
            "KIND_JSON_SCHEMA",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = output_form::Kind;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(output_form::Kind::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(output_form::Kind::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "KIND_UNSPECIFIED" => Ok(output_form::Kind::Unspecified),
                    "KIND_TEXT" => Ok(output_form::Kind::Text),
                    "KIND_JSON" => Ok(output_form::Kind::Json),
                    "KIND_JSON_SCHEMA" => Ok(output_form::Kind::JsonSchema),
                    _ => Ok(output_form::Kind::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Part {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.cache_mark_json.is_some() {
            len += 1;
        }
        if self.body.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Part", len)?;
        if let Some(v) = self.cache_mark_json.as_ref() {
            struct_ser.serialize_field("cacheMarkJson", v)?;
        }
        if let Some(v) = self.body.as_ref() {
            match v {
                part::Body::Text(v) => {
                    struct_ser.serialize_field("text", v)?;
                }
                part::Body::Image(v) => {
                    struct_ser.serialize_field("image", v)?;
                }
                part::Body::File(v) => {
                    struct_ser.serialize_field("file", v)?;
                }
                part::Body::ToolCall(v) => {
                    struct_ser.serialize_field("toolCall", v)?;
                }
                part::Body::ToolResult(v) => {
                    struct_ser.serialize_field("toolResult", v)?;
                }
                part::Body::Thinking(v) => {
                    struct_ser.serialize_field("thinking", v)?;
                }
                part::Body::RedactedThinking(v) => {
                    struct_ser.serialize_field("redactedThinking", v)?;
                }
                part::Body::Refusal(v) => {
                    struct_ser.serialize_field("refusal", v)?;
                }
            }
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Part {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "cache_mark_json",
            "cacheMarkJson",
            "text",
            "image",
            "file",
            "tool_call",
            "toolCall",
            "tool_result",
            "toolResult",
            "thinking",
            "redacted_thinking",
            "redactedThinking",
            "refusal",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            CacheMarkJson,
            Text,
            Image,
            File,
            ToolCall,
            ToolResult,
            Thinking,
            RedactedThinking,
            Refusal,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "cacheMarkJson" | "cache_mark_json" => Ok(GeneratedField::CacheMarkJson),
                            "text" => Ok(GeneratedField::Text),
                            "image" => Ok(GeneratedField::Image),
                            "file" => Ok(GeneratedField::File),
                            "toolCall" | "tool_call" => Ok(GeneratedField::ToolCall),
                            "toolResult" | "tool_result" => Ok(GeneratedField::ToolResult),
                            "thinking" => Ok(GeneratedField::Thinking),
                            "redactedThinking" | "redacted_thinking" => Ok(GeneratedField::RedactedThinking),
                            "refusal" => Ok(GeneratedField::Refusal),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Part;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Part")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Part, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut cache_mark_json__ = None;
                let mut body__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::CacheMarkJson => {
                            if cache_mark_json__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cacheMarkJson"));
                            }
                            cache_mark_json__ = map_.next_value()?;
                        }
                        GeneratedField::Text => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            body__ = map_.next_value::<::std::option::Option<_>>()?.map(part::Body::Text);
                        }
                        GeneratedField::Image => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("image"));
                            }
                            body__ = map_.next_value::<::std::option::Option<_>>()?.map(part::Body::Image)
;
                        }
                        GeneratedField::File => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("file"));
                            }
                            body__ = map_.next_value::<::std::option::Option<_>>()?.map(part::Body::File)
;
                        }
                        GeneratedField::ToolCall => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("toolCall"));
                            }
                            body__ = map_.next_value::<::std::option::Option<_>>()?.map(part::Body::ToolCall)
;
                        }
                        GeneratedField::ToolResult => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("toolResult"));
                            }
                            body__ = map_.next_value::<::std::option::Option<_>>()?.map(part::Body::ToolResult)
;
                        }
                        GeneratedField::Thinking => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("thinking"));
                            }
                            body__ = map_.next_value::<::std::option::Option<_>>()?.map(part::Body::Thinking)
;
                        }
                        GeneratedField::RedactedThinking => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("redactedThinking"));
                            }
                            body__ = map_.next_value::<::std::option::Option<_>>()?.map(part::Body::RedactedThinking);
                        }
                        GeneratedField::Refusal => {
                            if body__.is_some() {
                                return Err(serde::de::Error::duplicate_field("refusal"));
                            }
                            body__ = map_.next_value::<::std::option::Option<_>>()?.map(part::Body::Refusal);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Part {
                    cache_mark_json: cache_mark_json__,
                    body: body__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Part", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Reasoning {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.mode != 0 {
            len += 1;
        }
        if self.budget_tokens.is_some() {
            len += 1;
        }
        if self.effort.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Reasoning", len)?;
        if self.mode != 0 {
            let v = reasoning::Mode::try_from(self.mode)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.mode)))?;
            struct_ser.serialize_field("mode", &v)?;
        }
        if let Some(v) = self.budget_tokens.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("budgetTokens", ToString::to_string(&v).as_str())?;
        }
        if let Some(v) = self.effort.as_ref() {
            struct_ser.serialize_field("effort", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Reasoning {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "mode",
            "budget_tokens",
            "budgetTokens",
            "effort",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Mode,
            BudgetTokens,
            Effort,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "mode" => Ok(GeneratedField::Mode),
                            "budgetTokens" | "budget_tokens" => Ok(GeneratedField::BudgetTokens),
                            "effort" => Ok(GeneratedField::Effort),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Reasoning;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Reasoning")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Reasoning, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut mode__ = None;
                let mut budget_tokens__ = None;
                let mut effort__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Mode => {
                            if mode__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mode"));
                            }
                            mode__ = Some(map_.next_value::<reasoning::Mode>()? as i32);
                        }
                        GeneratedField::BudgetTokens => {
                            if budget_tokens__.is_some() {
                                return Err(serde::de::Error::duplicate_field("budgetTokens"));
                            }
                            budget_tokens__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Effort => {
                            if effort__.is_some() {
                                return Err(serde::de::Error::duplicate_field("effort"));
                            }
                            effort__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Reasoning {
                    mode: mode__.unwrap_or_default(),
                    budget_tokens: budget_tokens__,
                    effort: effort__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Reasoning", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for reasoning::Mode {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "MODE_UNSPECIFIED",
            Self::Adaptive => "MODE_ADAPTIVE",
            Self::Budget => "MODE_BUDGET",
            Self::Off => "MODE_OFF",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for reasoning::Mode {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "MODE_UNSPECIFIED",
            "MODE_ADAPTIVE",
            "MODE_BUDGET",
            "MODE_OFF",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = reasoning::Mode;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(reasoning::Mode::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(reasoning::Mode::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "MODE_UNSPECIFIED" => Ok(reasoning::Mode::Unspecified),
                    "MODE_ADAPTIVE" => Ok(reasoning::Mode::Adaptive),
                    "MODE_BUDGET" => Ok(reasoning::Mode::Budget),
                    "MODE_OFF" => Ok(reasoning::Mode::Off),
                    _ => Ok(reasoning::Mode::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for RedactedThinkingBlock {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.data.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.RedactedThinkingBlock", len)?;
        if !self.data.is_empty() {
            struct_ser.serialize_field("data", &self.data)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for RedactedThinkingBlock {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "data",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Data,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "data" => Ok(GeneratedField::Data),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = RedactedThinkingBlock;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.RedactedThinkingBlock")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<RedactedThinkingBlock, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut data__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Data => {
                            if data__.is_some() {
                                return Err(serde::de::Error::duplicate_field("data"));
                            }
                            data__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(RedactedThinkingBlock {
                    data: data__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.RedactedThinkingBlock", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for RefusalBlock {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("turnkeep.connect.v1.RefusalBlock", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for RefusalBlock {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Ok(GeneratedField::__SkipField__)
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = RefusalBlock;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.RefusalBlock")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<RefusalBlock, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(RefusalBlock {
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.RefusalBlock", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Role {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "ROLE_UNSPECIFIED",
            Self::System => "ROLE_SYSTEM",
            Self::User => "ROLE_USER",
            Self::Assistant => "ROLE_ASSISTANT",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for Role {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "ROLE_UNSPECIFIED",
            "ROLE_SYSTEM",
            "ROLE_USER",
            "ROLE_ASSISTANT",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = Role;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(Role::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(Role::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "ROLE_UNSPECIFIED" => Ok(Role::Unspecified),
                    "ROLE_SYSTEM" => Ok(Role::System),
                    "ROLE_USER" => Ok(Role::User),
                    "ROLE_ASSISTANT" => Ok(Role::Assistant),
                    _ => Ok(Role::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for Sampling {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.temperature.is_some() {
            len += 1;
        }
        if self.top_p.is_some() {
            len += 1;
        }
        if self.top_k.is_some() {
            len += 1;
        }
        if self.seed.is_some() {
            len += 1;
        }
        if self.presence_penalty.is_some() {
            len += 1;
        }
        if self.frequency_penalty.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Sampling", len)?;
        if let Some(v) = self.temperature.as_ref() {
            struct_ser.serialize_field("temperature", v)?;
        }
        if let Some(v) = self.top_p.as_ref() {
            struct_ser.serialize_field("topP", v)?;
        }
        if let Some(v) = self.top_k.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("topK", ToString::to_string(&v).as_str())?;
        }
        if let Some(v) = self.seed.as_ref() {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("seed", ToString::to_string(&v).as_str())?;
        }
        if let Some(v) = self.presence_penalty.as_ref() {
            struct_ser.serialize_field("presencePenalty", v)?;
        }
        if let Some(v) = self.frequency_penalty.as_ref() {
            struct_ser.serialize_field("frequencyPenalty", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Sampling {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "temperature",
            "top_p",
            "topP",
            "top_k",
            "topK",
            "seed",
            "presence_penalty",
            "presencePenalty",
            "frequency_penalty",
            "frequencyPenalty",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Temperature,
            TopP,
            TopK,
            Seed,
            PresencePenalty,
            FrequencyPenalty,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "temperature" => Ok(GeneratedField::Temperature),
                            "topP" | "top_p" => Ok(GeneratedField::TopP),
                            "topK" | "top_k" => Ok(GeneratedField::TopK),
                            "seed" => Ok(GeneratedField::Seed),
                            "presencePenalty" | "presence_penalty" => Ok(GeneratedField::PresencePenalty),
                            "frequencyPenalty" | "frequency_penalty" => Ok(GeneratedField::FrequencyPenalty),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Sampling;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Sampling")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Sampling, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut temperature__ = None;
                let mut top_p__ = None;
                let mut top_k__ = None;
                let mut seed__ = None;
                let mut presence_penalty__ = None;
                let mut frequency_penalty__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Temperature => {
                            if temperature__.is_some() {
                                return Err(serde::de::Error::duplicate_field("temperature"));
                            }
                            temperature__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::TopP => {
                            if top_p__.is_some() {
                                return Err(serde::de::Error::duplicate_field("topP"));
                            }
                            top_p__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::TopK => {
                            if top_k__.is_some() {
                                return Err(serde::de::Error::duplicate_field("topK"));
                            }
                            top_k__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::Seed => {
                            if seed__.is_some() {
                                return Err(serde::de::Error::duplicate_field("seed"));
                            }
                            seed__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::PresencePenalty => {
                            if presence_penalty__.is_some() {
                                return Err(serde::de::Error::duplicate_field("presencePenalty"));
                            }
                            presence_penalty__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::FrequencyPenalty => {
                            if frequency_penalty__.is_some() {
                                return Err(serde::de::Error::duplicate_field("frequencyPenalty"));
                            }
                            frequency_penalty__ = 
                                map_.next_value::<::std::option::Option<::pbjson::private::NumberDeserialize<_>>>()?.map(|x| x.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Sampling {
                    temperature: temperature__,
                    top_p: top_p__,
                    top_k: top_k__,
                    seed: seed__,
                    presence_penalty: presence_penalty__,
                    frequency_penalty: frequency_penalty__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Sampling", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Start {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.id.is_empty() {
            len += 1;
        }
        if !self.model.is_empty() {
            len += 1;
        }
        if self.usage.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Start", len)?;
        if !self.id.is_empty() {
            struct_ser.serialize_field("id", &self.id)?;
        }
        if !self.model.is_empty() {
            struct_ser.serialize_field("model", &self.model)?;
        }
        if let Some(v) = self.usage.as_ref() {
            struct_ser.serialize_field("usage", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Start {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "model",
            "usage",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Model,
            Usage,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "model" => Ok(GeneratedField::Model),
                            "usage" => Ok(GeneratedField::Usage),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Start;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Start")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Start, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut model__ = None;
                let mut usage__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Model => {
                            if model__.is_some() {
                                return Err(serde::de::Error::duplicate_field("model"));
                            }
                            model__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Usage => {
                            if usage__.is_some() {
                                return Err(serde::de::Error::duplicate_field("usage"));
                            }
                            usage__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Start {
                    id: id__.unwrap_or_default(),
                    model: model__.unwrap_or_default(),
                    usage: usage__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Start", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for TextBlock {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("turnkeep.connect.v1.TextBlock", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for TextBlock {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Ok(GeneratedField::__SkipField__)
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = TextBlock;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.TextBlock")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<TextBlock, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(TextBlock {
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.TextBlock", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Thinking {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.text.is_empty() {
            len += 1;
        }
        if self.signature.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Thinking", len)?;
        if !self.text.is_empty() {
            struct_ser.serialize_field("text", &self.text)?;
        }
        if let Some(v) = self.signature.as_ref() {
            struct_ser.serialize_field("signature", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Thinking {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "text",
            "signature",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Text,
            Signature,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "text" => Ok(GeneratedField::Text),
                            "signature" => Ok(GeneratedField::Signature),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Thinking;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Thinking")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Thinking, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut text__ = None;
                let mut signature__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Text => {
                            if text__.is_some() {
                                return Err(serde::de::Error::duplicate_field("text"));
                            }
                            text__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Signature => {
                            if signature__.is_some() {
                                return Err(serde::de::Error::duplicate_field("signature"));
                            }
                            signature__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Thinking {
                    text: text__.unwrap_or_default(),
                    signature: signature__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Thinking", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ThinkingBlock {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let len = 0;
        let struct_ser = serializer.serialize_struct("turnkeep.connect.v1.ThinkingBlock", len)?;
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ThinkingBlock {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                            Ok(GeneratedField::__SkipField__)
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ThinkingBlock;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.ThinkingBlock")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ThinkingBlock, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                while map_.next_key::<GeneratedField>()?.is_some() {
                    let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(ThinkingBlock {
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.ThinkingBlock", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Tool {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.description.is_empty() {
            len += 1;
        }
        if !self.parameters_json_schema.is_empty() {
            len += 1;
        }
        if self.strict.is_some() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Tool", len)?;
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.description.is_empty() {
            struct_ser.serialize_field("description", &self.description)?;
        }
        if !self.parameters_json_schema.is_empty() {
            struct_ser.serialize_field("parametersJsonSchema", &self.parameters_json_schema)?;
        }
        if let Some(v) = self.strict.as_ref() {
            struct_ser.serialize_field("strict", v)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Tool {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "name",
            "description",
            "parameters_json_schema",
            "parametersJsonSchema",
            "strict",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Name,
            Description,
            ParametersJsonSchema,
            Strict,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "name" => Ok(GeneratedField::Name),
                            "description" => Ok(GeneratedField::Description),
                            "parametersJsonSchema" | "parameters_json_schema" => Ok(GeneratedField::ParametersJsonSchema),
                            "strict" => Ok(GeneratedField::Strict),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Tool;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Tool")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Tool, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut name__ = None;
                let mut description__ = None;
                let mut parameters_json_schema__ = None;
                let mut strict__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Description => {
                            if description__.is_some() {
                                return Err(serde::de::Error::duplicate_field("description"));
                            }
                            description__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ParametersJsonSchema => {
                            if parameters_json_schema__.is_some() {
                                return Err(serde::de::Error::duplicate_field("parametersJsonSchema"));
                            }
                            parameters_json_schema__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Strict => {
                            if strict__.is_some() {
                                return Err(serde::de::Error::duplicate_field("strict"));
                            }
                            strict__ = map_.next_value()?;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Tool {
                    name: name__.unwrap_or_default(),
                    description: description__.unwrap_or_default(),
                    parameters_json_schema: parameters_json_schema__.unwrap_or_default(),
                    strict: strict__,
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Tool", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolCall {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.id.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        if !self.arguments_json.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.ToolCall", len)?;
        if !self.id.is_empty() {
            struct_ser.serialize_field("id", &self.id)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        if !self.arguments_json.is_empty() {
            struct_ser.serialize_field("argumentsJson", &self.arguments_json)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolCall {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "name",
            "arguments_json",
            "argumentsJson",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Name,
            ArgumentsJson,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "name" => Ok(GeneratedField::Name),
                            "argumentsJson" | "arguments_json" => Ok(GeneratedField::ArgumentsJson),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolCall;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.ToolCall")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolCall, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut name__ = None;
                let mut arguments_json__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::ArgumentsJson => {
                            if arguments_json__.is_some() {
                                return Err(serde::de::Error::duplicate_field("argumentsJson"));
                            }
                            arguments_json__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolCall {
                    id: id__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                    arguments_json: arguments_json__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.ToolCall", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolCallBlock {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.id.is_empty() {
            len += 1;
        }
        if !self.name.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.ToolCallBlock", len)?;
        if !self.id.is_empty() {
            struct_ser.serialize_field("id", &self.id)?;
        }
        if !self.name.is_empty() {
            struct_ser.serialize_field("name", &self.name)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolCallBlock {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "name",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Name,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "name" => Ok(GeneratedField::Name),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolCallBlock;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.ToolCallBlock")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolCallBlock, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut name__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Name => {
                            if name__.is_some() {
                                return Err(serde::de::Error::duplicate_field("name"));
                            }
                            name__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolCallBlock {
                    id: id__.unwrap_or_default(),
                    name: name__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.ToolCallBlock", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for ToolChoice {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.mode != 0 {
            len += 1;
        }
        if !self.only.is_empty() {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.ToolChoice", len)?;
        if self.mode != 0 {
            let v = tool_choice::Mode::try_from(self.mode)
                .map_err(|_| serde::ser::Error::custom(format!("Invalid variant {}", self.mode)))?;
            struct_ser.serialize_field("mode", &v)?;
        }
        if !self.only.is_empty() {
            struct_ser.serialize_field("only", &self.only)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolChoice {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "mode",
            "only",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Mode,
            Only,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "mode" => Ok(GeneratedField::Mode),
                            "only" => Ok(GeneratedField::Only),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolChoice;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.ToolChoice")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolChoice, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut mode__ = None;
                let mut only__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Mode => {
                            if mode__.is_some() {
                                return Err(serde::de::Error::duplicate_field("mode"));
                            }
                            mode__ = Some(map_.next_value::<tool_choice::Mode>()? as i32);
                        }
                        GeneratedField::Only => {
                            if only__.is_some() {
                                return Err(serde::de::Error::duplicate_field("only"));
                            }
                            only__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolChoice {
                    mode: mode__.unwrap_or_default(),
                    only: only__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.ToolChoice", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for tool_choice::Mode {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        let variant = match self {
            Self::Unspecified => "MODE_UNSPECIFIED",
            Self::Auto => "MODE_AUTO",
            Self::None => "MODE_NONE",
            Self::Required => "MODE_REQUIRED",
        };
        serializer.serialize_str(variant)
    }
}
impl<'de> serde::Deserialize<'de> for tool_choice::Mode {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "MODE_UNSPECIFIED",
            "MODE_AUTO",
            "MODE_NONE",
            "MODE_REQUIRED",
        ];

        struct GeneratedVisitor;

        impl serde::de::Visitor<'_> for GeneratedVisitor {
            type Value = tool_choice::Mode;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(formatter, "expected one of: {:?}", &FIELDS)
            }

            fn visit_i64<E>(self, v: i64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(tool_choice::Mode::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Signed(v), &self)
                    })
            }

            fn visit_u64<E>(self, v: u64) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                i32::try_from(v)
                    .ok()
                    .and_then(|x| x.try_into().ok().or_else(|| Some(tool_choice::Mode::default())))
                    .ok_or_else(|| {
                        serde::de::Error::invalid_value(serde::de::Unexpected::Unsigned(v), &self)
                    })
            }

            fn visit_str<E>(self, value: &str) -> std::result::Result<Self::Value, E>
            where
                E: serde::de::Error,
            {
                match value {
                    "MODE_UNSPECIFIED" => Ok(tool_choice::Mode::Unspecified),
                    "MODE_AUTO" => Ok(tool_choice::Mode::Auto),
                    "MODE_NONE" => Ok(tool_choice::Mode::None),
                    "MODE_REQUIRED" => Ok(tool_choice::Mode::Required),
                    _ => Ok(tool_choice::Mode::default()),
                }
            }
        }
        deserializer.deserialize_any(GeneratedVisitor)
    }
}
impl serde::Serialize for ToolResult {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if !self.id.is_empty() {
            len += 1;
        }
        if !self.content.is_empty() {
            len += 1;
        }
        if self.is_error {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.ToolResult", len)?;
        if !self.id.is_empty() {
            struct_ser.serialize_field("id", &self.id)?;
        }
        if !self.content.is_empty() {
            struct_ser.serialize_field("content", &self.content)?;
        }
        if self.is_error {
            struct_ser.serialize_field("isError", &self.is_error)?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for ToolResult {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "id",
            "content",
            "is_error",
            "isError",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Id,
            Content,
            IsError,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "id" => Ok(GeneratedField::Id),
                            "content" => Ok(GeneratedField::Content),
                            "isError" | "is_error" => Ok(GeneratedField::IsError),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = ToolResult;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.ToolResult")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<ToolResult, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut id__ = None;
                let mut content__ = None;
                let mut is_error__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Id => {
                            if id__.is_some() {
                                return Err(serde::de::Error::duplicate_field("id"));
                            }
                            id__ = Some(map_.next_value()?);
                        }
                        GeneratedField::Content => {
                            if content__.is_some() {
                                return Err(serde::de::Error::duplicate_field("content"));
                            }
                            content__ = Some(map_.next_value()?);
                        }
                        GeneratedField::IsError => {
                            if is_error__.is_some() {
                                return Err(serde::de::Error::duplicate_field("isError"));
                            }
                            is_error__ = Some(map_.next_value()?);
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(ToolResult {
                    id: id__.unwrap_or_default(),
                    content: content__.unwrap_or_default(),
                    is_error: is_error__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.ToolResult", FIELDS, GeneratedVisitor)
    }
}
impl serde::Serialize for Usage {
    #[allow(deprecated)]
    fn serialize<S>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error>
    where
        S: serde::Serializer,
    {
        use serde::ser::SerializeStruct;
        let mut len = 0;
        if self.input != 0 {
            len += 1;
        }
        if self.cache_read != 0 {
            len += 1;
        }
        if self.cache_write != 0 {
            len += 1;
        }
        if self.output != 0 {
            len += 1;
        }
        if self.reasoning != 0 {
            len += 1;
        }
        let mut struct_ser = serializer.serialize_struct("turnkeep.connect.v1.Usage", len)?;
        if self.input != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("input", ToString::to_string(&self.input).as_str())?;
        }
        if self.cache_read != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("cacheRead", ToString::to_string(&self.cache_read).as_str())?;
        }
        if self.cache_write != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("cacheWrite", ToString::to_string(&self.cache_write).as_str())?;
        }
        if self.output != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("output", ToString::to_string(&self.output).as_str())?;
        }
        if self.reasoning != 0 {
            #[allow(clippy::needless_borrow)]
            #[allow(clippy::needless_borrows_for_generic_args)]
            struct_ser.serialize_field("reasoning", ToString::to_string(&self.reasoning).as_str())?;
        }
        struct_ser.end()
    }
}
impl<'de> serde::Deserialize<'de> for Usage {
    #[allow(deprecated)]
    fn deserialize<D>(deserializer: D) -> std::result::Result<Self, D::Error>
    where
        D: serde::Deserializer<'de>,
    {
        const FIELDS: &[&str] = &[
            "input",
            "cache_read",
            "cacheRead",
            "cache_write",
            "cacheWrite",
            "output",
            "reasoning",
        ];

        #[allow(clippy::enum_variant_names)]
        enum GeneratedField {
            Input,
            CacheRead,
            CacheWrite,
            Output,
            Reasoning,
            __SkipField__,
        }
        impl<'de> serde::Deserialize<'de> for GeneratedField {
            fn deserialize<D>(deserializer: D) -> std::result::Result<GeneratedField, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                struct GeneratedVisitor;

                impl serde::de::Visitor<'_> for GeneratedVisitor {
                    type Value = GeneratedField;

                    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        write!(formatter, "expected one of: {:?}", &FIELDS)
                    }

                    #[allow(unused_variables)]
                    fn visit_str<E>(self, value: &str) -> std::result::Result<GeneratedField, E>
                    where
                        E: serde::de::Error,
                    {
                        match value {
                            "input" => Ok(GeneratedField::Input),
                            "cacheRead" | "cache_read" => Ok(GeneratedField::CacheRead),
                            "cacheWrite" | "cache_write" => Ok(GeneratedField::CacheWrite),
                            "output" => Ok(GeneratedField::Output),
                            "reasoning" => Ok(GeneratedField::Reasoning),
                            _ => Ok(GeneratedField::__SkipField__),
                        }
                    }
                }
                deserializer.deserialize_identifier(GeneratedVisitor)
            }
        }
        struct GeneratedVisitor;
        impl<'de> serde::de::Visitor<'de> for GeneratedVisitor {
            type Value = Usage;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("struct turnkeep.connect.v1.Usage")
            }

            fn visit_map<V>(self, mut map_: V) -> std::result::Result<Usage, V::Error>
                where
                    V: serde::de::MapAccess<'de>,
            {
                let mut input__ = None;
                let mut cache_read__ = None;
                let mut cache_write__ = None;
                let mut output__ = None;
                let mut reasoning__ = None;
                while let Some(k) = map_.next_key()? {
                    match k {
                        GeneratedField::Input => {
                            if input__.is_some() {
                                return Err(serde::de::Error::duplicate_field("input"));
                            }
                            input__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::CacheRead => {
                            if cache_read__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cacheRead"));
                            }
                            cache_read__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::CacheWrite => {
                            if cache_write__.is_some() {
                                return Err(serde::de::Error::duplicate_field("cacheWrite"));
                            }
                            cache_write__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Output => {
                            if output__.is_some() {
                                return Err(serde::de::Error::duplicate_field("output"));
                            }
                            output__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::Reasoning => {
                            if reasoning__.is_some() {
                                return Err(serde::de::Error::duplicate_field("reasoning"));
                            }
                            reasoning__ = 
                                Some(map_.next_value::<::pbjson::private::NumberDeserialize<_>>()?.0)
                            ;
                        }
                        GeneratedField::__SkipField__ => {
                            let _ = map_.next_value::<serde::de::IgnoredAny>()?;
                        }
                    }
                }
                Ok(Usage {
                    input: input__.unwrap_or_default(),
                    cache_read: cache_read__.unwrap_or_default(),
                    cache_write: cache_write__.unwrap_or_default(),
                    output: output__.unwrap_or_default(),
                    reasoning: reasoning__.unwrap_or_default(),
                })
            }
        }
        deserializer.deserialize_struct("turnkeep.connect.v1.Usage", FIELDS, GeneratedVisitor)
    }
}
