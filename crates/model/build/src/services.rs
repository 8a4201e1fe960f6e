//! A trait for each service, and the function that serves it; the model's src/service.rs explains why not
//! tonic's.

use proc_macro2::TokenStream;
use prost_reflect::{DescriptorPool, MethodDescriptor, ServiceDescriptor};
use quote::{format_ident, quote};

use crate::{is_ours, names};

pub(crate) fn of(pool: &DescriptorPool) -> TokenStream {
    pool.services().filter(|service| is_ours(service.package_name())).map(|s| service(&s)).collect()
}

fn service(service: &ServiceDescriptor) -> TokenStream {
    let full = service.full_name();
    let name = format_ident!("{}", service.name());
    let serve = format_ident!("{}", names::snake(service.name()));
    let words: Vec<_> = service.methods().map(|method| method.name().to_owned()).collect();
    let signatures = service.methods().map(|method| {
        let call = format_ident!("{}", names::snake(method.name()));
        let (input, output) = (names::path(&method.input()), names::path(&method.output()));
        let reply = if streams(&method) { quote!(Replies) } else { quote!(Reply) };
        quote!(async fn #call(&self, call: Request<#input>) -> #reply<#output>;)
    });
    let calls = service.methods().map(|method| {
        let call = format_ident!("{}", names::snake(method.name()));
        let encode = if streams(&method) { quote!(many) } else { quote!(one) };
        quote!(Box::pin(async move { #encode(rpcs.#call(read(call)?).await) }))
    });
    let does = format!(" What `{full}` does.");
    let serves = format!(" Serves `{full}`.");
    quote! {
        #[doc = #does]
        #[tonic::async_trait]
        pub trait #name: Send + Sync + 'static { #(#signatures)* }

        #[doc = #serves]
        #[allow(clippy::too_many_lines, reason = "some lines for each method")]
        pub fn #serve(rpcs: Arc<dyn #name>) -> Service {
            Service::new(#full, &[#(#words),*], move |method, call| {
                let rpcs = Arc::clone(&rpcs);
                Some(match method { #(#words => #calls,)* _ => return None })
            })
        }
    }
}

fn streams(method: &MethodDescriptor) -> bool {
    assert!(
        !method.is_client_streaming(),
        "{}: streams of requests are not served",
        method.full_name()
    );
    method.is_server_streaming()
}
