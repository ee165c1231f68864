use genai::adapter::AdapterKind;
use reqwest::Url;

/// An API that this crate speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Provider {
    DeepSeek,
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
}

impl Provider {
    /// In order of preference.
    pub(crate) const ALL: [Self; 5] = [Self::DeepSeek, Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Ollama];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::DeepSeek => "deepseek",
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Ollama => "ollama",
        }
    }

    pub(crate) fn key_variables(self) -> &'static [&'static str] {
        match self {
            Self::DeepSeek => &["DEEPSEEK_API_KEY"],
            Self::OpenAi => &["OPENAI_API_KEY"],
            Self::Anthropic => &["ANTHROPIC_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
            Self::Ollama => &[],
        }
    }

    pub(crate) fn address_variable(self) -> &'static str {
        match self {
            Self::DeepSeek => "DEEPSEEK_BASE_URL",
            Self::OpenAi => "OPENAI_BASE_URL",
            Self::Anthropic => "ANTHROPIC_BASE_URL",
            Self::Gemini => "GEMINI_BASE_URL",
            Self::Ollama => "OLLAMA_HOST",
        }
    }

    pub(crate) fn default_model(self) -> &'static str {
        match self {
            Self::DeepSeek => "deepseek-chat",
            Self::OpenAi => "gpt-5-mini",
            Self::Anthropic => "claude-sonnet-4-6",
            Self::Gemini => "gemini-3.5-flash",
            Self::Ollama => "qwen3",
        }
    }

    pub(crate) fn kind(self) -> AdapterKind {
        match self {
            Self::DeepSeek => AdapterKind::DeepSeek,
            Self::OpenAi => AdapterKind::OpenAI,
            Self::Anthropic => AdapterKind::Anthropic,
            Self::Gemini => AdapterKind::Gemini,
            Self::Ollama => AdapterKind::Ollama,
        }
    }

    /// Whether a model can be given pictures, by its name: none of the APIs tells.
    pub(crate) fn takes_images(self, model: &str) -> bool {
        let model = model.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| model.contains(word));
        match self {
            Self::DeepSeek => false,
            Self::Anthropic => !has(&["claude-2", "claude-instant"]),
            Self::Gemini => !has(&["embedding", "gemma-3-1b"]),
            Self::OpenAi => has(&SEEING) || has(&["gpt-4.1", "gpt-4o", "gpt-4-turbo", "gpt-5", "gpt-6", "o3", "o4"]),
            Self::Ollama => has(&SEEING),
        }
    }

    /// The address of the API, from what a person wrote, as in `http://localhost:8080`, with or without a version.
    pub(crate) fn base(self, written: Option<&str>) -> Result<Url, BadAddress> {
        let bad = || BadAddress(self);
        let default = || Url::parse(self.default_base()).expect("the addresses below are URLs");
        let Some(written) = written else { return Ok(default()) };
        let mut url = match self {
            Self::Ollama => ollama_host(written).ok_or_else(bad)?,
            Self::DeepSeek | Self::OpenAi | Self::Anthropic | Self::Gemini => Url::parse(written).map_err(|_| bad())?,
        };
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(bad());
        }
        url.set_fragment(None);
        let mut path = path_of(&url);
        let last = path.last().map_or("", String::as_str);
        match self {
            Self::DeepSeek | Self::OpenAi if path.is_empty() => path.push("v1".into()),
            Self::DeepSeek | Self::OpenAi => {}
            Self::Anthropic if last != "v1" => path.push("v1".into()),
            Self::Gemini if !matches!(last, "v1" | "v1alpha" | "v1beta") => path.push("v1beta".into()),
            Self::Anthropic | Self::Gemini => {}
            Self::Ollama if matches!(last, "v1" | "api") => drop(path.pop()),
            Self::Ollama => {}
        }
        url.set_path(&path.join("/"));
        Ok(url)
    }

    /// Where a streamed request to a model goes.
    pub(crate) fn endpoint(self, base: &Url, model: &str) -> Url {
        let mut url = base.clone();
        let gemini = format!("{}:streamGenerateContent", model.strip_prefix("models/").unwrap_or(model));
        let more: &[&str] = match self {
            Self::DeepSeek | Self::OpenAi => &["chat", "completions"],
            Self::Anthropic => &["messages"],
            Self::Gemini => &["models", &gemini],
            Self::Ollama => &["api", "chat"],
        };
        url.path_segments_mut().expect("http URLs have a path").pop_if_empty().extend(more);
        if self == Self::Gemini {
            url.query_pairs_mut().append_pair("alt", "sse");
        }
        url
    }

    fn default_base(self) -> &'static str {
        match self {
            Self::DeepSeek => "https://api.deepseek.com/v1",
            Self::OpenAi => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com/v1",
            Self::Gemini => "https://generativelanguage.googleapis.com/v1beta",
            Self::Ollama => "http://localhost:11434",
        }
    }
}

/// What a person wrote is not an address. It is not repeated: it may hold a password.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BadAddress(pub(crate) Provider);

/// Parts of the names of open models that can see.
const SEEING: [&str; 9] = ["vision", "-vl", "vl-", "vl:", "llava", "pixtral", "gemma3", "gemma4", "multimodal"];

/// Reads `OLLAMA_HOST` as Ollama does: everything but the host may be missing.
fn ollama_host(written: &str) -> Option<Url> {
    let mut url = if written.contains("://") {
        Url::parse(written).ok()?
    } else {
        let host = if written.starts_with(':') { "127.0.0.1" } else { "" };
        let mut url = Url::parse(&format!("http://{host}{written}")).ok()?;
        let authority = written.split('/').next().unwrap_or_default();
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
        if !has_port {
            url.set_port(Some(11434)).ok()?;
        }
        url
    };
    if url.host_str() == Some("0.0.0.0") {
        url.set_host(Some("127.0.0.1")).ok()?;
    }
    Some(url)
}

fn path_of(url: &Url) -> Vec<String> {
    let segments = url.path_segments().into_iter().flatten();
    segments.filter(|segment| !segment.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(provider: Provider, written: &str, endpoint: &str) {
        let base = provider.base(Some(written)).unwrap();
        assert_eq!(provider.endpoint(&base, "m").as_str(), endpoint, "{written}");
    }

    #[test]
    fn addresses_work_as_people_write_them() {
        use Provider::*;
        for written in ["http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/"] {
            check(OpenAi, written, "http://h:1/v1/chat/completions");
            check(DeepSeek, written, "http://h:1/v1/chat/completions");
            check(Anthropic, written, "http://h:1/v1/messages");
        }
        check(OpenAi, "https://h/api/v1", "https://h/api/v1/chat/completions");
        check(OpenAi, "https://h/openai?api-version=3", "https://h/openai/chat/completions?api-version=3");
        check(Anthropic, "https://h/anthropic/", "https://h/anthropic/v1/messages");
        for written in ["http://h:1", "http://h:1/v1beta/"] {
            check(Gemini, written, "http://h:1/v1beta/models/m:streamGenerateContent?alt=sse");
        }
        check(Ollama, "h", "http://h:11434/api/chat");
        check(Ollama, "h:80", "http://h/api/chat");
        check(Ollama, "http://h", "http://h/api/chat");
        check(Ollama, ":8", "http://127.0.0.1:8/api/chat");
        check(Ollama, "0.0.0.0", "http://127.0.0.1:11434/api/chat");
        check(Ollama, "h:7/v1/", "http://h:7/api/chat");
        check(Ollama, "[::1]:7", "http://[::1]:7/api/chat");
        check(Ollama, "https://h/o", "https://h/o/api/chat");
    }

    #[test]
    fn what_is_no_http_address_is_refused() {
        for written in ["", "h:1", "localhost:8080/v1", "ftp://h", "http://", "file:///etc/passwd", "data:x"] {
            assert_eq!(Provider::OpenAi.base(Some(written)), Err(BadAddress(Provider::OpenAi)), "{written}");
        }
        assert!(Provider::Ollama.base(Some("a b")).is_err());
    }

    #[test]
    fn a_models_name_cannot_leave_its_place_in_the_address() {
        let base = Provider::Gemini.base(None).unwrap();
        let url = Provider::Gemini.endpoint(&base, "../../x?y#z");
        assert_eq!(url.path(), "/v1beta/models/..%2F..%2Fx%3Fy%23z:streamGenerateContent");
    }
}
