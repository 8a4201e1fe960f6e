//! A trait for each service, and the function that serves it; src/service.rs explains why not tonic's.

use std::fmt::Write as _;

use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};

use crate::{is_ours, names};

pub(crate) fn of(pool: &DescriptorPool) -> String {
    pool.services().filter(|service| is_ours(service.package_name())).map(|s| service(&s)).collect()
}

fn service(service: &ServiceDescriptor) -> String {
    let name = service.name();
    let full = service.full_name();
    let (mut methods, mut calls, mut all) = (String::new(), String::new(), Vec::new());
    for method in service.methods() {
        let call = names::snake(method.name());
        let input = names::path(&method.input());
        let output = names::path(&method.output());
        let (reply, sent) = replies(&method);
        let _ = writeln!(
            methods,
            "async fn {call}(&self, call: Request<{input}>) -> {reply}<{output}>;"
        );
        let _ = writeln!(
            calls,
            "{:?} => Box::pin(async move {{ {sent}(rpcs.{call}(read(call)?).await) }}),",
            method.name()
        );
        all.push(method.name().to_owned());
    }
    format!(
        "/// What `{full}` does.
        #[tonic::async_trait]
        pub trait {name}: Send + Sync + 'static {{ {methods} }}

        /// Serves `{full}`.
        pub fn {}(rpcs: Arc<dyn {name}>) -> Service {{
            Service::new({full:?}, &{all:?}, move |method, call| {{
                let rpcs = Arc::clone(&rpcs);
                Some(match method {{ {calls} _ => return None }})
            }})
        }}\n",
        names::snake(name)
    )
}

/// The return type of the trait's method, and the function that encodes it.
fn replies(method: &MethodDescriptor) -> (&'static str, &'static str) {
    assert!(
        !method.is_client_streaming(),
        "{}: streams of requests are not served",
        method.full_name()
    );
    if method.is_server_streaming() { ("Replies", "many") } else { ("Reply", "one") }
}
