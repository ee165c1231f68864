//! The layer of the environment: a variable for every key that is one value.

use std::fmt::Display;
use std::str::FromStr;

use crate::document::shown;
use crate::file::parse_approval;
use crate::{Config, ConfigError, Env, Origin, Setting, parse_whole};

/// The variable that says where sessions are kept; see [`Places`](crate::Places).
const HOME: &str = "TETHER_HOME";

pub(crate) fn apply(config: &mut Config, env: &Env, wrong: &mut Vec<ConfigError>) {
    let mut layer = Layer { env, wrong, known: vec![HOME] };
    layer.set("TETHER_MODEL", &mut config.model, |text| parse(text).map(Some));
    layer.set("TETHER_SANDBOX_DEFAULT", &mut config.sandbox, parse);
    layer.set("TETHER_SANDBOX_INITIAL_OVERRIDE", &mut config.initial_override, parse);
    layer.set("TETHER_SANDBOX_TMP", &mut config.tmp, parse);
    layer.set("TETHER_SANDBOX_NETWORK", &mut config.network, parse);
    layer.set("TETHER_APPROVAL_DEFAULT", &mut config.approval, |text| parse_approval(text).map_err(str::to_owned));
    layer.set("TETHER_BUDGET_MAX_DEPTH", &mut config.max_depth, |text| parse_whole(text, 0));
    layer.set("TETHER_BUDGET_MAX_CHILDREN", &mut config.max_children, |text| parse_whole(text, 0).map(Some));
    layer
        .set("TETHER_BUDGET_MAX_CHILDREN_TOTAL", &mut config.max_children_total, |text| parse_whole(text, 0).map(Some));
    layer.set("TETHER_BUDGET_TOKENS", &mut config.tokens, |text| parse_whole(text, 1).map(Some));
    layer.set("TETHER_BUDGET_SECONDS", &mut config.seconds, |text| parse_whole(text, 1).map(Some));
    layer.known.push("TETHER_OFFLINE_SCRIPT");
    if let Some(script) = env.os("TETHER_OFFLINE_SCRIPT") {
        config.script.set(Some(script.into()), Origin::Variable("TETHER_OFFLINE_SCRIPT"));
    }
    layer.refuse_others();
}

struct Layer<'a> {
    env: &'a Env,
    wrong: &'a mut Vec<ConfigError>,
    known: Vec<&'static str>,
}

impl Layer<'_> {
    fn set<T>(&mut self, name: &'static str, setting: &mut Setting<T>, parse: impl FnOnce(&str) -> Result<T, String>) {
        self.known.push(name);
        let Some(value) = self.env.os(name) else { return };
        match value.to_str().ok_or_else(|| "not UTF-8".to_owned()).and_then(parse) {
            Ok(value) => setting.set(value, Origin::Variable(name)),
            Err(message) => self.wrong.push(ConfigError::Variable { name: name.into(), message }),
        }
    }

    /// A misspelt variable would leave something as it is that somebody wanted otherwise.
    fn refuse_others(self) {
        for name in self.env.own().filter(|name| !self.known.contains(name)) {
            let near = |known: &&&str| (strsim::jaro_winkler(name, known) * 1e6) as u64;
            let nearest = self.known.iter().max_by_key(near).unwrap_or(&HOME);
            let message = format!("there is no such variable; did you mean ${nearest}?");
            self.wrong.push(ConfigError::Variable { name: shown(name).into(), message });
        }
    }
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}
