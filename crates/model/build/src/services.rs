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
    let signatures = service.methods().map(|method| {
        let call = format_ident!("{}", names::snake(method.name()));
        let (input, output) = (names::path(&method.input()), names::path(&method.output()));
        let reply = if streams(&method) { quote!(Replies) } else { quote!(Reply) };
        quote!(async fn #call(&self, call: Request<#input>) -> #reply<#output>;)
    });
    let methods = service.methods().map(|method| {
        let word = method.name();
        let call = format_ident!("{}", names::snake(word));
        let encode = if streams(&method) { quote!(many) } else { quote!(one) };
        let handler = quote!(Box::pin(async move { #encode(rpcs.#call(read(call)?).await) }));
        quote!((#word, |rpcs, call| #handler))
    });
    let table = format_ident!("{}", names::snake(service.name()).to_uppercase());
    let does = format!(" What `{full}` does.");
    let serves = format!(" Serves `{full}`.");
    quote! {
        #[doc = #does]
        #[tonic::async_trait]
        pub trait #name: Send + Sync + 'static { #(#signatures)* }

        const #table: &[Handler<dyn #name>] = &[#(#methods),*];

        #[doc = #serves]
        pub fn #serve(rpcs: Arc<dyn #name>) -> Service {
            Service::new(#full, #table, rpcs)
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
