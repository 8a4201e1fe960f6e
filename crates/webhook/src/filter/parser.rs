//! Parses tokens to a syntax tree, by recursive descent of bounded depth.

use super::{
    error::FilterError,
    expression::{Expression, Literal, LiteralValue, Operator, Path},
    token::{Token, tokens},
};

/// The maximum length of a filter's text, in bytes.
pub const LONGEST_FILTER: usize = 1024;
/// The maximum nesting of parentheses and negations, including the filter itself.
pub const DEEPEST: usize = 16;
/// The maximum number of paths, literals, tests and operators in a filter.
pub const MOST_NODES: usize = 128;

pub(super) fn parse(text: &str) -> Result<Expression, FilterError> {
    if text.len() > LONGEST_FILTER {
        return Err(FilterError::new(LONGEST_FILTER, "a filter has at most 1024 bytes"));
    }
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, nodes: 0 };
    let expression = parser.any()?;
    parser.expect(&Token::End, "`&&`, `||` or the end")?;
    Ok(expression)
}

struct Parser {
    tokens: Vec<(usize, Token)>,
    next: usize,
    depth: usize,
    nodes: usize,
}

impl Parser {
    fn any(&mut self) -> Result<Expression, FilterError> {
        self.nested(|parser| {
            let mut operands = parser.joined("||", |parser| {
                let mut operands = parser.joined("&&", Self::unary)?;
                Ok(if operands.len() == 1 { operands.remove(0) } else { Expression::All(operands) })
            })?;
            Ok(if operands.len() == 1 { operands.remove(0) } else { Expression::Any(operands) })
        })
    }

    /// Parses operands joined by the same operator.
    fn joined(
        &mut self,
        operator: &'static str,
        operand: impl Fn(&mut Self) -> Result<Expression, FilterError>,
    ) -> Result<Vec<Expression>, FilterError> {
        let mut operands = vec![operand(self)?];
        while self.take(&Token::Sign(operator)) {
            self.node()?;
            operands.push(operand(self)?);
        }
        Ok(operands)
    }

    fn unary(&mut self) -> Result<Expression, FilterError> {
        let offset = self.offset();
        if !self.take(&Token::Sign("!")) {
            return self.primary();
        }
        self.node()?;
        let inner = self.nested(Self::unary)?;
        if matches!(inner, Expression::Compare { .. } | Expression::In { .. }) && !self.closed() {
            return Err(FilterError::new(
                offset,
                "write `!(a == b)`: CEL reads `!a == b` as `(!a) == b`",
            ));
        }
        Ok(Expression::Not(Box::new(inner)))
    }

    /// Whether the last token was a closing parenthesis.
    fn closed(&self) -> bool {
        let last = self.next.checked_sub(1).and_then(|last| self.tokens.get(last));
        last.is_some_and(|(_, token)| *token == Token::Sign(")"))
    }

    fn primary(&mut self) -> Result<Expression, FilterError> {
        if self.take(&Token::Sign("(")) {
            let inner = self.any()?;
            self.expect(&Token::Sign(")"), "`)`")?;
            return Ok(inner);
        }
        if self.peek() == &Token::Name("has".to_owned()) && self.peek_second() == &Token::Sign("(")
        {
            return self.has();
        }
        self.test()
    }

    fn has(&mut self) -> Result<Expression, FilterError> {
        self.next += 2;
        let path = self.path()?;
        if path.names.len() < 2 {
            let name = path.dotted();
            let problem = format!(
                "has() takes a member of `data`, such as `has(data.tool_id)`, as in CEL; where \
                 `{name}` is absent, no test of it matches"
            );
            return Err(FilterError::new(path.offset, problem));
        }
        self.expect(&Token::Sign(")"), "`)`")?;
        self.node()?;
        Ok(Expression::Has(path))
    }

    fn test(&mut self) -> Result<Expression, FilterError> {
        let path = self.path()?;
        self.node()?;
        if self.peek() == &Token::Sign("(") {
            return self.call(path);
        }
        if self.take(&Token::Name("in".to_owned())) {
            return Ok(Expression::In { path, literals: self.list()? });
        }
        let operator = match self.peek() {
            Token::Sign("==") => Operator::Equal,
            Token::Sign("!=") => Operator::NotEqual,
            Token::Sign("<") => Operator::Less,
            Token::Sign("<=") => Operator::LessOrEqual,
            Token::Sign(">") => Operator::Greater,
            Token::Sign(">=") => Operator::GreaterOrEqual,
            _ => return Err(self.unexpected("a comparison, `in`, `.startsWith(` or `.endsWith(`")),
        };
        self.next += 1;
        Ok(Expression::Compare { path, operator, literal: self.literal()? })
    }

    /// Parses `path.startsWith("…")`: the last name of the parsed path is the function.
    fn call(&mut self, mut path: Path) -> Result<Expression, FilterError> {
        let function = path.names.pop().unwrap_or_default();
        let known = matches!(function.as_str(), "startsWith" | "endsWith");
        if !known || path.names.is_empty() {
            let problem = format!(
                "unknown function `{function}`; there are has(), .startsWith() and .endsWith()"
            );
            return Err(FilterError::new(path.offset, problem));
        }
        self.expect(&Token::Sign("("), "`(`")?;
        let Token::Text(text) = self.peek().clone() else {
            return Err(self.unexpected("text in quotes"));
        };
        self.next += 1;
        self.node()?;
        self.expect(&Token::Sign(")"), "`)`")?;
        Ok(if function == "startsWith" {
            Expression::StartsWith { path, text }
        } else {
            Expression::EndsWith { path, text }
        })
    }

    fn path(&mut self) -> Result<Path, FilterError> {
        let offset = self.offset();
        let mut names = vec![self.name("a member of the event, such as `data.risk`")?];
        while self.take(&Token::Sign(".")) {
            names.push(self.name("the name of a member")?);
        }
        self.node()?;
        Ok(Path { names, offset })
    }

    fn name(&mut self, expected: &str) -> Result<String, FilterError> {
        match self.peek().clone() {
            Token::Name(name) if !matches!(name.as_str(), "in" | "true" | "false" | "null") => {
                self.next += 1;
                Ok(name)
            }
            _ => Err(self.unexpected(expected)),
        }
    }

    fn list(&mut self) -> Result<Vec<Literal>, FilterError> {
        self.expect(&Token::Sign("["), "`[` and literals")?;
        let mut literals = vec![self.literal()?];
        while self.take(&Token::Sign(",")) {
            literals.push(self.literal()?);
        }
        self.expect(&Token::Sign("]"), "`,` or `]`")?;
        Ok(literals)
    }

    fn literal(&mut self) -> Result<Literal, FilterError> {
        let offset = self.offset();
        let value = match self.peek().clone() {
            Token::Text(text) => LiteralValue::Text(text),
            Token::Integer(number) => LiteralValue::Integer(number),
            Token::Name(name) if name == "true" => LiteralValue::Boolean(true),
            Token::Name(name) if name == "false" => LiteralValue::Boolean(false),
            _ => return Err(self.unexpected("text in quotes, a whole number, true or false")),
        };
        self.next += 1;
        self.node()?;
        Ok(Literal { value, offset })
    }

    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(_, token)| token)
    }

    fn peek_second(&self) -> &Token {
        self.tokens.get(self.next + 1).map_or(&Token::End, |(_, token)| token)
    }

    fn offset(&self) -> usize {
        self.tokens.get(self.next).or(self.tokens.last()).map_or(0, |(offset, _)| *offset)
    }

    fn take(&mut self, token: &Token) -> bool {
        let taken = self.peek() == token;
        self.next += usize::from(taken);
        taken
    }

    fn expect(&mut self, token: &Token, expected: &str) -> Result<(), FilterError> {
        if self.take(token) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn unexpected(&self, expected: &str) -> FilterError {
        let found = match self.peek() {
            Token::Name(name) => format!("`{name}`"),
            Token::Text(_) => "text".to_owned(),
            Token::Integer(number) => format!("`{number}`"),
            Token::Sign(sign) => format!("`{sign}`"),
            Token::End => "the end".to_owned(),
        };
        FilterError::new(self.offset(), format!("expected {expected}, found {found}"))
    }

    fn nested<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, FilterError>,
    ) -> Result<T, FilterError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(FilterError::new(self.offset(), "a filter nests at most 16 levels"));
        }
        let value = inner(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn node(&mut self) -> Result<(), FilterError> {
        self.nodes += 1;
        if self.nodes > MOST_NODES {
            let problem = "a filter has at most 128 paths, literals, tests and operators";
            return Err(FilterError::new(self.offset(), problem));
        }
        Ok(())
    }
}
