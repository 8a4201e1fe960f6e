//! Path templates of `google.api.http`:
//!
//! ```text
//! Template = "/" Segments [ ":" LITERAL ] ;   Segments = Segment { "/" Segment } ;
//! Segment  = "*" | "**" | LITERAL | Variable ;
//! Variable = "{" FieldPath [ "=" Segments ] "}" ;
//! ```

use std::fmt::Write as _;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Segment {
    Literal(String),
    One,
    Rest,
}

/// A field path and the range of segments that it covers, end exclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) path: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) segments: Vec<Segment>,
    pub(crate) variables: Vec<Variable>,
    pub(crate) verb: String,
}

impl Template {
    pub(crate) fn parse(written: &str) -> Result<Self, String> {
        let mut template = Self::default();
        let path = written.strip_prefix('/').ok_or("does not begin with `/`")?;
        if path.is_empty() {
            return Ok(template);
        }
        let mut rest = path;
        loop {
            rest = template.segment(rest)?;
            if let Some(more) = rest.strip_prefix('/') {
                rest = more;
                continue;
            }
            if let Some(verb) = rest.strip_prefix(':') {
                if verb.is_empty() || verb.contains(['/', ':', '{', '}', '*']) {
                    return Err(format!("has an invalid verb `:{verb}`"));
                }
                verb.clone_into(&mut template.verb);
            } else if !rest.is_empty() {
                return Err(format!("has `{rest}` after a variable or wildcard"));
            }
            break;
        }
        let early = template.segments.iter().rev().skip(1).any(|s| *s == Segment::Rest);
        if early {
            return Err("has `**` before its end".to_owned());
        }
        if template.segments.last() == Some(&Segment::Rest) && !template.verb.is_empty() {
            return Err("has a verb after `**`".to_owned());
        }
        Ok(template)
    }

    /// Parses one segment and returns the rest.
    fn segment<'a>(&mut self, text: &'a str) -> Result<&'a str, String> {
        if let Some(rest) = text.strip_prefix('{') {
            let (variable, rest) = rest.split_once('}').ok_or("has a `{` without `}`")?;
            let (path, inner) = variable.split_once('=').unwrap_or((variable, "*"));
            if path.is_empty() || inner.contains('{') {
                return Err(format!("has an invalid variable `{{{variable}}}`"));
            }
            let from = self.segments.len();
            for part in inner.split('/') {
                let left = self.segment(part)?;
                if !left.is_empty() {
                    return Err(format!("has `{left}` within a variable"));
                }
            }
            let to = self.segments.len();
            self.variables.push(Variable { path: path.to_owned(), from, to });
            return Ok(rest);
        }
        let end = text.find(['/', ':']).unwrap_or(text.len());
        let (segment, rest) = text.split_at(end);
        self.segments.push(match segment {
            "*" => Segment::One,
            "**" => Segment::Rest,
            "" => return Err("has an empty segment".to_owned()),
            text if text.contains(['*', '{', '}', '=']) => {
                return Err(format!("has an invalid segment `{text}`"));
            }
            text => Segment::Literal(text.to_owned()),
        });
        Ok(rest)
    }

    /// Returns the shape of the template. Templates with the same shape are the same path:
    /// `/x/{id}` and `/x/{x.id}`.
    pub(crate) fn shape(&self) -> String {
        let mut shape = String::new();
        for segment in &self.segments {
            shape.push('/');
            shape.push_str(match segment {
                Segment::Literal(text) => text,
                Segment::One => "*",
                Segment::Rest => "**",
            });
        }
        if !self.verb.is_empty() {
            shape.push(':');
            shape.push_str(&self.verb);
        }
        shape
    }

    /// Returns the template in the form of `OpenAPI`, with one name for each wildcard.
    pub(crate) fn openapi(&self) -> String {
        let mut path = String::new();
        let mut names = self.parameters().into_iter();
        for segment in &self.segments {
            path.push('/');
            if let Segment::Literal(text) = segment {
                path.push_str(text);
            } else {
                let (name, _) = names.next().unwrap_or_default();
                let _ = write!(path, "{{{name}}}");
            }
        }
        if path.is_empty() {
            path.push('/');
        }
        if !self.verb.is_empty() {
            path.push(':');
            path.push_str(&self.verb);
        }
        path
    }

    /// Returns a name for each wildcard, with the variable that it belongs to.
    pub(crate) fn parameters(&self) -> Vec<(String, Option<&Variable>)> {
        let wild = |at: &usize| !matches!(self.segments.get(*at), Some(Segment::Literal(_)));
        let mut parameters = Vec::new();
        for at in (0..self.segments.len()).filter(wild) {
            let variable = self.variables.iter().find(|v| (v.from..v.to).contains(&at));
            let name = match variable {
                None => format!("segment_{}", at + 1),
                Some(v) if (v.from..v.to).filter(wild).count() == 1 => v.path.clone(),
                Some(v) => {
                    format!("{}_{}", v.path, (v.from..=at).filter(wild).count())
                }
            };
            parameters.push((name, variable));
        }
        parameters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let template = Template::parse("/v1/{x.name=shelves/*/books/*}/pages/{page}:turn");
        let template = template.expect("a template");
        assert_eq!(template.verb, "turn");
        assert_eq!(template.shape(), "/v1/shelves/*/books/*/pages/*:turn");
        let path = "/v1/shelves/{x.name_1}/books/{x.name_2}/pages/{page}:turn";
        assert_eq!(template.openapi(), path);
        assert_eq!(Template::parse("/").expect("the root").openapi(), "/");
        assert_eq!(Template::parse("/f/{p=**}").expect("a rest").openapi(), "/f/{p}");
        let literal = Template::parse("/v1/decisions:export").expect("a verb on a literal");
        assert_eq!(
            (literal.shape().as_str(), literal.verb.as_str()),
            ("/v1/decisions:export", "export")
        );
    }

    #[test]
    fn refuses_malformed_templates() {
        for wrong in [
            "",
            "v1",
            "/v1/",
            "/v1//x",
            "/{id",
            "/{}",
            "/{a={b}}",
            "/{id}.json",
            "/**/x",
            "/x:",
            "/x:a:b",
            "/a*",
            "/{p=**}:verb",
            "/{a=b:c}",
        ] {
            assert!(Template::parse(wrong).is_err(), "{wrong}");
        }
    }
}
