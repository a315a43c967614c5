//! What a job starts from: Flink's settings `execution.state-recovery.…`.

use std::collections::BTreeMap;

use flott_control::ClaimMode;
use flott_core::{Error, Result};
use flott_local::args::claim_mode;

/// The keys, each with an older one behind it.
const PATH: [&str; 2] = ["execution.state-recovery.path", "execution.savepoint.path"];
const IGNORES_UNCLAIMED: [&str; 2] =
    ["execution.state-recovery.ignore-unclaimed-state", "execution.savepoint.ignore-unclaimed-state"];
const CLAIM_MODE: [&str; 2] = ["execution.state-recovery.claim-mode", "execution.savepoint-restore-mode"];

/// The savepoint that the jobs which follow start from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// The folder or URL of a savepoint or retained checkpoint; without one a job starts empty.
    pub path: Option<String>,
    /// Whether state that no operator claims may be dropped.
    pub allow_non_restored_state: bool,
    /// Whose the savepoint is from the start on.
    pub claim_mode: ClaimMode,
}

impl Recovery {
    /// Whether a setting is one of these.
    pub(super) fn has(key: &str) -> bool {
        [PATH, IGNORES_UNCLAIMED, CLAIM_MODE].concat().contains(&key)
    }

    /// What was SET.
    pub(super) fn of(all: &BTreeMap<String, String>) -> Result<Self> {
        let value = |keys: [&'static str; 2]| {
            let found = keys.into_iter().find_map(|key| Some((key, all.get(key)?.trim())));
            found.filter(|(_, value)| !value.is_empty())
        };
        let allow_non_restored_state = match value(IGNORES_UNCLAIMED) {
            None => false,
            Some((_, text)) if text.eq_ignore_ascii_case("true") => true,
            Some((_, text)) if text.eq_ignore_ascii_case("false") => false,
            Some((key, text)) => return Err(Error::input(format!("SET '{key}' = '{text}' is not true or false"))),
        };
        let claim_mode = match value(CLAIM_MODE) {
            None => ClaimMode::default(),
            Some((key, text)) => claim_mode(text).map_err(|error| error.context(format!("SET '{key}'")))?,
        };
        Ok(Self { path: value(PATH).map(|(_, path)| path.to_owned()), allow_non_restored_state, claim_mode })
    }

    /// The settings that say so; none of what is so anyway.
    pub fn settings(&self) -> Vec<(&'static str, &str)> {
        let path = self.path.as_deref().map(|path| (PATH[0], path));
        let ignores_unclaimed = self.allow_non_restored_state.then_some((IGNORES_UNCLAIMED[0], "true"));
        let claims = (self.claim_mode == ClaimMode::Claim).then_some((CLAIM_MODE[0], "claim"));
        path.into_iter().chain(ignores_unclaimed).chain(claims).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &str)]) -> Result<Recovery> {
        Recovery::of(&pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect())
    }

    #[test]
    fn settings_say_what_jobs_start_from() {
        assert_eq!(set(&[]).unwrap(), Recovery::default());
        let recovery =
            Recovery { path: Some("/s".to_owned()), allow_non_restored_state: true, claim_mode: ClaimMode::Claim };
        assert_eq!(set(&recovery.settings()).unwrap(), recovery);
        let older = [
            ("execution.savepoint.path", "/s"),
            ("execution.savepoint.ignore-unclaimed-state", "TRUE"),
            ("execution.savepoint-restore-mode", "CLAIM"),
        ];
        assert!(older.iter().all(|(key, _)| Recovery::has(key)));
        assert_eq!(set(&older).unwrap(), recovery);
        assert_eq!(set(&[(PATH[0], ""), older[0]]).unwrap(), Recovery::default(), "the newer key counts");
        assert!(!Recovery::has("execution.state-recovery.from-local"), "it is the engine's");
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = set(&[(IGNORES_UNCLAIMED[0], "yes")]).unwrap_err().message;
        assert!(error.contains("ignore-unclaimed-state' = 'yes' is not true or false"), "{error}");
        let error = set(&[(CLAIM_MODE[0], "legacy")]).unwrap_err().message;
        assert!(error.contains("claim-mode") && error.contains("'legacy' is not a claim mode"), "{error}");
    }
}
