//! The commands of the collections, for clap: their arguments and the request they make.

use clap::{
    Arg, ArgAction, ArgMatches, Args as _, Command, Error, FromArgMatches, Subcommand,
    builder::{PossibleValuesParser, ValueParser},
    error::ErrorKind,
    value_parser,
};
use gateway_rest::{Cardinality, Field, Kind, Route, Shape};

use super::{
    PAGE, Read,
    collection::{self, Collection},
    server::Where,
    words::{self, Parameter},
};
use crate::cli::args::tenant_id;

const LIST: &str = "list";
const SHOW: &str = "show";
const ID: &str = "id";
/// Prefix of the ids of arguments that are query parameters, so that they cannot clash with others.
const QUERY: char = '?';
/// The filter that also accepts a slug.
const TENANT: &str = "tenant_id";

impl Subcommand for Read {
    fn augment_subcommands(command: Command) -> Command {
        collection::all().fold(command, |command, collection| {
            // The help texts are looked up only for the command that is used.
            let read = Command::new(collection.name)
                .about(format!("Look up {}", collection.name))
                .subcommand_required(true)
                .arg_required_else_help(true)
                .defer(operations);
            command.subcommand(read)
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        collection::named(name).is_some()
    }
}

impl FromArgMatches for Read {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let missing = || Error::new(ErrorKind::MissingSubcommand);
        let (name, operation) = matches.subcommand().ok_or_else(missing)?;
        let collection = collection::named(name).ok_or_else(missing)?;
        let (_, given) = operation.subcommand().ok_or_else(missing)?;
        let id = given.try_get_one::<String>(ID).ok().flatten().cloned();
        let at = Where::from_arg_matches(given)?;
        let environment = clap::parser::ValueSource::EnvVariable;
        let at = at.token_from_environment(given.value_source("token") == Some(environment));
        Ok(Self { collection, id, query: query(given), at })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Adds the operations of the collection of that name.
fn operations(command: Command) -> Command {
    match collection::named(command.get_name()) {
        Some(collection) => command.subcommands(offered(&collection)),
        None => command,
    }
}

fn offered(collection: &Collection) -> impl Iterator<Item = Command> {
    let show = match (&collection.list, collection.item) {
        (_, Some(item)) => Some(show(item)),
        (Some(list), None) => Some(pick(list.record)),
        (None, None) => None,
    };
    let list = collection.list.as_ref().map(|list| self::list(list.route));
    list.into_iter().chain(show).map(Where::augment_args)
}

fn list(route: &'static Route) -> Command {
    let said = words::of(route.path);
    let flags = said.query().map(|parameter| flag(parameter, route));
    Command::new(LIST).about(said.summary.clone()).args(flags)
}

fn show(route: &'static Route) -> Command {
    let said = words::of(route.path);
    let flags = said.query().map(|parameter| flag(parameter, route));
    let help = said.variable().map(Parameter::help).unwrap_or_default();
    let name = route.variables.first().map_or(ID, |variable| variable.path);
    Command::new(SHOW).about(said.summary.clone()).arg(id(name, help)).args(flags)
}

/// Shows one record of a list that has no operation for it.
fn pick(record: &'static Shape) -> Command {
    let name = collection::identity(record).map_or(ID, |field| field.name);
    Command::new(SHOW).about("Reads one of the list").arg(id(name, format!("Its `{name}`")))
}

fn id(name: &str, help: String) -> Arg {
    Arg::new(ID)
        .required(true)
        .value_name(name.to_uppercase())
        .help(help)
        .value_parser(segment as fn(&str) -> _)
}

/// A path's segment: an empty one, or one of dots, would change the path.
fn segment(text: &str) -> Result<String, &'static str> {
    match text {
        "" | "." | ".." => Err("is not an id"),
        text => Ok(text.to_owned()),
    }
}

fn flag(parameter: &Parameter, route: &'static Route) -> Arg {
    let field = field(route.input, &parameter.name);
    let several = field.is_some_and(|field| field.cardinality == Cardinality::Repeated);
    let always = field.is_some_and(|field| field.cardinality == Cardinality::Single);
    let arg = Arg::new(format!("{QUERY}{}", parameter.name))
        .help(parameter.help())
        .required(parameter.required)
        // A token may begin with a dash.
        .allow_hyphen_values(parameter.name == PAGE)
        .action(if several { ArgAction::Append } else { ArgAction::Set });
    let arg = if parameter.name == TENANT {
        arg.long("tenant").visible_alias("tenant-id")
    } else {
        arg.long(long(&parameter.name))
    };
    match field.map(|field| &field.kind) {
        // Leaving it out means false.
        Some(Kind::Bool) if always => arg.action(ArgAction::SetTrue),
        kind => {
            let name = parameter.name.rsplit(['.', '_']).next().unwrap_or_default();
            arg.value_name(name.to_uppercase()).value_parser(parser(parameter, kind))
        }
    }
}

fn parser(parameter: &Parameter, kind: Option<&Kind>) -> ValueParser {
    let choice = match kind {
        Some(Kind::Enum(words)) => words.iter().map(|(_, word)| (*word).to_owned()).collect(),
        Some(Kind::Bool) => vec!["true".to_owned(), "false".to_owned()],
        Some(Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 | Kind::Uint32 | Kind::Fixed32) => {
            let (least, most) = parameter.bounds();
            return value_parser!(i64).range(least..=most).into();
        }
        _ => parameter.choice(),
    };
    if choice.is_empty() { value_parser!(String) } else { PossibleValuesParser::new(choice).into() }
}

/// `page_token` is `page-token`.
fn long(name: &str) -> String {
    name.replace(['_', '.'], "-")
}

/// The flag of a query parameter.
pub(super) fn typed(name: &str) -> String {
    if name == TENANT { "--tenant".to_owned() } else { format!("--{}", long(name)) }
}

/// The field of a query parameter, by its dotted path.
fn field(shape: &'static Shape, path: &str) -> Option<&'static Field> {
    match path.split_once('.') {
        None => shape.field(path),
        Some((first, rest)) => match &shape.field(first)?.kind {
            Kind::Message(inner) => field(inner, rest),
            _ => None,
        },
    }
}

/// The query parameters that were given.
fn query(given: &ArgMatches) -> Vec<(String, String)> {
    let mut query = Vec::new();
    for id in given.ids() {
        let Some(name) = id.as_str().strip_prefix(QUERY) else { continue };
        // A flag that was not given has its default.
        if given.value_source(id.as_str()) != Some(clap::parser::ValueSource::CommandLine) {
            continue;
        }
        for value in given.get_raw(id.as_str()).into_iter().flatten() {
            let value = value.to_string_lossy();
            let value = if name == TENANT { tenant_id(&value) } else { value.into_owned() };
            query.push((name.to_owned(), value));
        }
    }
    query
}

#[cfg(test)]
mod tests {
    use authority_model::rest::ROUTES;
    use clap::CommandFactory;
    use gateway_rest::Segment;

    use super::*;
    use crate::cli::args::Args;

    #[test]
    fn any_collection_of_the_service_would_be_commands_as_it_is() {
        let mut names: Vec<_> = ROUTES
            .iter()
            .filter_map(|route| match route.segments.last() {
                Some(Segment::Literal(name)) => Some(*name),
                _ => None,
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        let found: Vec<_> = names.into_iter().filter_map(collection::find).collect();
        assert!(found.len() > 20, "{found:?}");
        let mut all = Command::new("all");
        for collection in &found {
            let offered: Vec<_> = offered(collection).collect();
            assert!(offered.iter().all(|command| command.get_about().is_some()));
            all = all.subcommand(Command::new(collection.name).subcommands(offered));
        }
        // Fails on duplicate flags, also with the global ones.
        Args::command().subcommand(all).debug_assert();
    }

    #[test]
    fn a_filter_is_asked_for_as_the_service_names_it() {
        let asked = |typed: &str| {
            let typed = Args::command().try_get_matches_from(typed.split(' ')).unwrap();
            Read::from_arg_matches(&typed).unwrap()
        };
        let read = asked(
            "x delegations list --tenant acme --page-token -a --count --limit 5 --json \
             --delegate-id svc:agent:acme:bot",
        );
        let mut query: Vec<_> = read.query.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        query.sort_unstable();
        assert_eq!(
            query,
            [
                ("count", "true"),
                ("delegate_id", "svc:agent:acme:bot"),
                ("limit", "5"),
                ("page_token", "-a"),
                ("tenant_id", "svc:tenant:acme"),
            ]
        );
        assert!(read.id.is_none());
        let read = asked("x tenants show acme");
        assert_eq!((read.id.as_deref(), read.query.len()), (Some("acme"), 0));
    }
}
