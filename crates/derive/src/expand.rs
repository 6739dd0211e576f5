//! The code that is made. Everything about a field has the field's span, so that the compiler points at it.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};

use crate::input::{Field, Input, Shape};

pub(crate) fn config(input: &Input) -> TokenStream {
    let Input { ident, generics, spec, fields } = input;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let overlays = fields.iter().map(overlay);
    let traces = fields.iter().map(trace);
    quote! {
        #[automatically_derived]
        impl #impl_generics ::mainstay::config::Config for #ident #type_generics #where_clause {
            type Spec = #spec;

            fn overlay(&mut self, spec: Self::Spec) {
                #(#overlays)*
            }

            fn trace(
                &self,
                spec: ::core::option::Option<&Self::Spec>,
                origins: &mut ::mainstay::config::Origins,
            ) {
                #(#traces)*
            }
        }

        #[automatically_derived]
        impl #impl_generics ::core::convert::From<#spec> for #ident #type_generics #where_clause {
            fn from(spec: #spec) -> Self {
                let mut config = <Self as ::core::default::Default>::default();
                ::mainstay::config::Config::overlay(&mut config, spec);
                config
            }
        }

        #[automatically_derived]
        impl #impl_generics ::core::convert::From<&#spec> for #ident #type_generics #where_clause {
            fn from(spec: &#spec) -> Self {
                <Self as ::core::convert::From<#spec>>::from(::core::clone::Clone::clone(spec))
            }
        }

        #[automatically_derived]
        impl #impl_generics ::core::convert::From<::core::option::Option<#spec>> for #ident #type_generics
        #where_clause
        {
            fn from(spec: ::core::option::Option<#spec>) -> Self {
                match spec {
                    ::core::option::Option::Some(spec) => <Self as ::core::convert::From<#spec>>::from(spec),
                    ::core::option::Option::None => <Self as ::core::default::Default>::default(),
                }
            }
        }
    }
}

/// Takes a field over from the spec.
fn overlay(field: &Field) -> TokenStream {
    let ident = &field.ident;
    let span = ident.span();
    let take = match field.shape {
        Shape::Skipped => return TokenStream::new(),
        Shape::Value => quote_spanned!(span=> self.#ident = ::core::convert::Into::into(given);),
        Shape::Nested => quote_spanned!(span=> ::mainstay::config::Config::overlay(&mut self.#ident, given);),
        Shape::Each => quote_spanned! {span=>
            self.#ident = ::core::iter::Iterator::collect(::core::iter::Iterator::map(
                ::core::iter::IntoIterator::into_iter(given),
                ::core::convert::Into::into,
            ));
        },
    };
    if field.is_required {
        quote_spanned! {span=> { let given = spec.#ident; #take } }
    } else {
        let or_former = field.former.as_ref().map(|former| quote_spanned!(former.span()=> .or(spec.#former)));
        quote_spanned! {span=>
            if let ::core::option::Option::Some(given) = ::mainstay::config::optional(spec.#ident)#or_former {
                #take
            }
        }
    }
}

/// Tells where a field's value came from.
fn trace(field: &Field) -> TokenStream {
    let Field { ident, name, .. } = field;
    let span = ident.span();
    let given = match (field.shape, field.is_required) {
        (Shape::Skipped, _) => quote_spanned!(span=> ::core::option::Option::<&()>::None),
        (_, true) => quote_spanned!(span=> ::core::option::Option::map(spec, |spec| &spec.#ident)),
        (_, false) => {
            let or_former = field.former.as_ref().map(|former| {
                let span = former.span();
                quote_spanned!(span=> .or(::core::option::Option::as_ref(&spec.#former)))
            });
            quote_spanned! {span=>
                ::core::option::Option::and_then(
                    spec,
                    |spec| ::core::option::Option::as_ref(&spec.#ident)#or_former,
                )
            }
        }
    };
    match field.shape {
        Shape::Nested => quote_spanned!(span=> origins.nested(#name, &self.#ident, #given);),
        Shape::Each => quote_spanned! {span=>
            origins.each(
                #name,
                &self.#ident,
                ::core::option::Option::map(#given, ::core::ops::Deref::deref),
            );
        },
        Shape::Value | Shape::Skipped if field.is_secret => {
            quote_spanned!(span=> origins.secret(#name, ::core::option::Option::is_some(&#given));)
        }
        Shape::Value | Shape::Skipped => quote_spanned! {span=>
            origins.value(#name, &self.#ident, ::core::option::Option::is_some(&#given));
        },
    }
}
