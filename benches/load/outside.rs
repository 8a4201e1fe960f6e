//! Load generators of other projects: h2load for gRPC, and wrk for REST.

use std::{fs, process::Command, time::Duration};

use tokio::task::spawn_blocking;

use crate::{
    Fault,
    call::{Call, Protocol, Shape},
    server::Folder,
};

/// Fails if the generator for this protocol is not installed.
pub(crate) fn check(protocol: Protocol) -> Result<(), Fault> {
    let program = program(protocol);
    match Command::new(program).arg("--version").output() {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("{program}: {error} (package `nghttp2-client` or `wrk`)").into()),
    }
}

/// Makes the call again and again, and returns the calls a second. Only their HTTP status is
/// checked.
pub(crate) async fn rate(
    call: &Call,
    shape: Shape,
    seconds: Duration,
    folder: &Folder,
) -> Result<f64, Fault> {
    let mut command = Command::new(program(call.protocol));
    let seconds = seconds.as_secs();
    let input = folder.path().join(program(call.protocol));
    command.arg("-t1").arg(format!("-c{}", shape.connections));
    match call.protocol {
        Protocol::Grpc => {
            let length = u32::try_from(call.body.len())?;
            fs::write(&input, [&[0][..], &length.to_be_bytes(), &call.body].concat())?;
            command.arg(format!("-m{}", shape.streams)).arg(format!("-D{seconds}"));
            command.arg("-d").arg(&input).args(["-H", "te: trailers"]);
            command.args(["-H", "content-type: application/grpc"]);
            if let Some(credential) = &call.credential {
                command.args(["-H", &format!("authorization: {credential}")]);
            }
        }
        Protocol::Rest => {
            fs::write(&input, script(call)?)?;
            command.arg(format!("-d{seconds}s")).arg("-s").arg(&input);
        }
    }
    command.arg(format!("http://{}{}", call.address, call.path));
    let done = spawn_blocking(move || command.output()).await??;
    let text = String::from_utf8_lossy(&done.stdout);
    let failed = ["Non-2xx", "Socket errors"].iter().any(|words| text.contains(words))
        || (text.contains("requests: ") && !text.contains(" 0 failed, 0 errored, 0 timeout"));
    read(&text).filter(|_| !failed && done.status.success()).ok_or_else(|| {
        format!("{}: {text}{}", call.path, String::from_utf8_lossy(&done.stderr)).into()
    })
}

fn program(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Grpc => "h2load",
        Protocol::Rest => "wrk",
    }
}

/// Returns the script with the request for wrk.
fn script(call: &Call) -> Result<String, Fault> {
    let body = str::from_utf8(&call.body)?;
    let credential = call.credential.as_deref().unwrap_or_default();
    Ok(format!(
        "wrk.method = 'POST'\nwrk.body = [==[{body}]==]\n\
         wrk.headers['content-type'] = 'application/json'\n\
         wrk.headers['authorization'] = '{credential}'\n"
    ))
}

/// Reads `finished in 4.00s, 19719.25 req/s, …` of h2load, or `Requests/sec:  11664.12` of wrk.
fn read(text: &str) -> Option<f64> {
    let of_h2load = text.split_once(" req/s").and_then(|(before, _)| before.rsplit_once(", "));
    let of_wrk = || text.split_once("Requests/sec:")?.1.split_whitespace().next();
    of_h2load.map(|(_, rate)| rate).or_else(of_wrk)?.parse().ok()
}
