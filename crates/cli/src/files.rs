//! Reads the caller's files, which become fields of a request.

use std::{
    fs, io,
    io::Read,
    path::{Path, PathBuf},
};

use authority_ids::{EntityRef, IdParts};
use serde_json::{Value, json};

use crate::{
    outcome::Failure,
    text::{of, plain},
};

/// Reads the text of a file, or standard input for `-`.
pub(crate) fn text(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        io::stdin().lock().read_to_string(&mut text).map(|_| text)
    } else {
        fs::read_to_string(file)
    };
    read.map_err(|error| Failure::usage(format!("`{}`: {error}", file.display())))
}

/// Reads the JSON in a file.
pub(crate) fn json(file: &Path) -> Result<Value, Failure> {
    serde_json::from_str(&text(file)?)
        .map_err(|error| Failure::usage(format!("`{}`: {error}", file.display())))
}

/// A candidate policy: `FILE` adds it, `ID=FILE` replaces the policy with this id.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    policy_id: Option<EntityRef>,
    file: PathBuf,
}

impl Candidate {
    /// Parses the flag.
    #[expect(clippy::unnecessary_wraps, reason = "a parser of clap's")]
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        Ok(match text.split_once('=').filter(|(id, _)| IdParts::begins(id)) {
            Some((id, file)) => Self { policy_id: Some(id.into()), file: file.into() },
            None => Self { policy_id: None, file: text.into() },
        })
    }

    /// The form that the service accepts.
    fn body(&self) -> Result<Value, Failure> {
        Ok(json!({"policy_id": self.policy_id, "cedar": text(&self.file)?}))
    }

    /// Lists the problems and warnings that a write of the candidates would return.
    pub(crate) fn findings(answer: &Value) -> Vec<String> {
        let each = |member: &'static str, told: &'static str| {
            let found = answer[member].as_array().into_iter().flatten();
            found.map(move |one| {
                let (field, problem) = (of(one, "field"), of(one, "problem"));
                format!("{told}: {}: {}", plain(field), plain(problem))
            })
        };
        each("problems", "a write would be refused").chain(each("warnings", "warning")).collect()
    }

    /// The bodies of all candidates.
    pub(crate) fn bodies(candidates: &[Self]) -> Result<Vec<Value>, Failure> {
        candidates.iter().map(Self::body).collect()
    }
}
