//! `script/bench`: decisions per second, their latency and cost, compared with a bare tonic service
//! (the ceiling) and with other products, on one machine in one run.
//!
//! The generator shares the cores with the servers. It is therefore a single thread that writes
//! pre-encoded frames and reads only the decision of a response. `cargo bench --bench load` runs
//! the generator.

mod archive;
mod archive_world;
mod arguments;
mod axes;
mod call;
mod cedar_agent;
mod ceiling;
mod cerbos;
mod console;
mod curves;
mod drive;
mod engine;
mod events;
mod goal;
mod guard;
mod history;
mod http1;
mod http2;
mod lists;
mod machine;
mod meter;
mod outside;
mod overload;
mod owner;
mod pace;
mod preflight;
mod product;
mod reality;
mod receiver;
mod row;
mod sealing;
mod server;
mod spicedb;
mod stored;
mod table;
mod targets;
mod wire;

use std::{error::Error, future::Future, process::ExitCode};

use clap::Parser;

use arguments::{Arguments, Command, Part};
use row::Report;

type Fault = Box<dyn Error + Send + Sync>;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Some(Command::Ceiling { port }) => threads().and_then(|runtime| {
            runtime.block_on(ceiling::serve(port))?;
            Ok(())
        }),
        // `cargo test --benches` also runs this binary and must not measure.
        None if !arguments.bench => Ok(()),
        None => measure(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("error: {fault}");
            ExitCode::FAILURE
        }
    }
}

/// The ceiling gets the same threads as the product's server: one for each core.
fn threads() -> Result<tokio::runtime::Runtime, Fault> {
    Ok(tokio::runtime::Builder::new_multi_thread().enable_all().build()?)
}

fn measure(arguments: &Arguments) -> Result<(), Fault> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (page, short) = runtime.block_on(until_stopped(everything(arguments)))??;
    println!("{page}");
    if let Some(path) = &arguments.markdown {
        std::fs::write(path, page)?;
    }
    if short.is_empty() { Ok(()) } else { Err(short.join("; ").into()) }
}

/// Runs the work until it ends or is interrupted. Dropping the work stops all servers.
async fn until_stopped<T>(work: impl Future<Output = T>) -> Result<T, Fault> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        done = work => Ok(done),
        _ = interrupt.recv() => Err("interrupted".into()),
        _ = terminate.recv() => Err("terminated".into()),
    }
}

/// Returns the Markdown page, and the goals that were missed.
async fn everything(arguments: &Arguments) -> Result<(String, Vec<String>), Fault> {
    let folder = server::Folder::new(&arguments.folder)?;
    if let Some(other) = &arguments.guard {
        return guard::compare(arguments, other, &folder).await;
    }
    let machine = machine::Machine::look(folder.path())?;
    let mut report = Report::default();
    for part in arguments.parts() {
        let measured = match part {
            Part::Engine => engine::note(&mut report),
            Part::Ceiling => ceiling::rows(arguments, &folder, &mut report).await,
            Part::Product => product::rows(arguments, &folder, &mut report).await,
            // Boxed: the future is large.
            Part::Archive => Box::pin(archive::rows(arguments, &folder, &mut report)).await,
            Part::Sealing => sealing::rows(arguments, &folder, &mut report).await,
            Part::Reality => reality::rows(arguments, &folder, &mut report).await,
            Part::Events => events::rows(arguments, &folder, &mut report).await,
            Part::Overload => overload::rows(arguments, &folder, &mut report).await,
            Part::Lists => lists::rows(arguments, &folder, &mut report).await,
            Part::Cerbos => cerbos::rows(arguments, &folder, &mut report).await,
            Part::CedarAgent => cedar_agent::rows(arguments, &folder, &mut report).await,
            Part::Spicedb => spicedb::rows(arguments, &mut report).await,
            Part::Agents => axes::agents(arguments, &folder, &mut report).await,
            Part::Tenants => axes::tenants(arguments, &folder, &mut report).await,
            Part::Delegations => axes::delegations(arguments, &folder, &mut report).await,
            Part::Held => axes::held(arguments, &folder, &mut report).await,
            Part::Policies => axes::policies(arguments, &folder, &mut report).await,
            Part::Statements => axes::statements(arguments, &folder, &mut report).await,
            Part::Context => axes::context(arguments, &folder, &mut report).await,
            Part::Stored => axes::stored(arguments, &folder, &mut report).await,
            Part::Nodes => axes::nodes(arguments, &folder, &mut report).await,
            // Boxed: the future is large.
            Part::Targets => Box::pin(targets::rows(arguments, &folder, &mut report)).await,
        };
        if let Err(fault) = measured {
            report.left_out(part.name(), &fault);
            if !part.is_peer() {
                report.short.push(format!("{}: it could not be measured", part.name()));
            }
        }
    }
    if report.rows.is_empty() && report.tables.is_empty() && report.notes.is_empty() {
        return Err("no part could be measured".into());
    }
    Ok((table::page(&machine, arguments.seconds, &report), report.short))
}
