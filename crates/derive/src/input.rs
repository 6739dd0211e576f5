//! What was asked for: attributes read, names settled, mistakes found.

use proc_macro2::Span;
use syn::ext::IdentExt as _;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned as _;
use syn::{Attribute, Data, DeriveInput, Error, Fields, Generics, Ident, LitStr, Result, Token, Type};

use crate::names::Rename;

/// A config to be made of a spec.
pub(crate) struct Input {
    pub(crate) ident: Ident,
    pub(crate) generics: Generics,
    pub(crate) spec: Type,
    pub(crate) fields: Vec<Field>,
}

/// A field of both.
pub(crate) struct Field {
    pub(crate) ident: Ident,
    /// As serde would call it.
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) is_required: bool,
    pub(crate) is_secret: bool,
    /// What the spec called it before. Read where the present name is not given.
    pub(crate) former: Option<Ident>,
}

/// How a field comes about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A value that the spec gives or does not.
    #[default]
    Value,
    /// A config of its own.
    Nested,
    /// A list of configs of their own.
    Each,
    /// Not in the spec at all.
    Skipped,
}

impl Input {
    pub(crate) fn parse(input: &DeriveInput) -> Result<Self> {
        let only_structs =
            || Error::new(input.ident.span(), "Config is derived for structs with named fields");
        let Data::Struct(data) = &input.data else { return Err(only_structs()) };
        let Fields::Named(named) = &data.fields else { return Err(only_structs()) };
        let mut errors = Errors::default();
        let container = errors.keep(Container::parse(&input.attrs)).unwrap_or_default();
        let rename = container.rename;
        let fields =
            named.named.iter().filter_map(|field| errors.keep(Field::parse(field, rename))).collect();
        if container.spec.is_none() && errors.0.is_none() {
            let text = "Config needs to know the spec: add #[config(spec = TheSpec)]";
            errors.add(Error::new(input.ident.span(), text));
        }
        match (container.spec, errors.0) {
            (Some(spec), None) => {
                Ok(Self { ident: input.ident.clone(), generics: input.generics.clone(), spec, fields })
            }
            (_, Some(error)) => Err(error),
            (None, None) => Err(only_structs()),
        }
    }
}

/// All mistakes at once, so that they are corrected at once.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.add(error)).ok()
    }

    fn add(&mut self, error: Error) {
        match &mut self.0 {
            Some(errors) => errors.combine(error),
            None => self.0 = Some(error),
        }
    }
}

#[derive(Default)]
struct Container {
    spec: Option<Type>,
    rename: Rename,
}

impl Container {
    fn parse(attributes: &[Attribute]) -> Result<Self> {
        let (mut spec, mut config, mut serde) = (None, None, None);
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("config")) {
            attribute.parse_nested_meta(|meta| {
                if meta.path.is_ident("spec") {
                    once(&meta, &mut spec, meta.value()?.parse::<Type>()?)
                } else if meta.path.is_ident("rename_all") {
                    once(&meta, &mut config, rule(&meta.value()?.parse()?)?)
                } else {
                    Err(meta.error("config of a struct knows spec and rename_all"))
                }
            })?;
        }
        each_serde(attributes, |name, value| {
            if name == "rename_all" {
                serde = Some(rule(value)?);
            }
            Ok(())
        })?;
        Ok(Self { spec, rename: config.or(serde).unwrap_or_default() })
    }
}

impl Field {
    fn parse(field: &syn::Field, rename: Rename) -> Result<Self> {
        let Some(ident) = field.ident.clone() else {
            return Err(Error::new(field.span(), "Config is derived for structs with named fields"));
        };
        let (mut shape, mut required, mut secret) = (None, None, None);
        let (mut config, mut serde, mut former) = (None, None, None);
        for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("config")) {
            attribute.parse_nested_meta(|meta| {
                if let Some(found) = shape_of(&meta) {
                    once(&meta, &mut shape, found)
                } else if meta.path.is_ident("required") {
                    once(&meta, &mut required, meta.path.span())
                } else if meta.path.is_ident("secret") {
                    once(&meta, &mut secret, meta.path.span())
                } else if meta.path.is_ident("rename") {
                    once(&meta, &mut config, meta.value()?.parse::<LitStr>()?.value())
                } else if meta.path.is_ident("former") {
                    once(&meta, &mut former, meta.value()?.parse::<Ident>()?)
                } else {
                    let known = "nested, each, required, secret, skip, rename and former";
                    Err(meta.error(format!("config of a field knows {known}")))
                }
            })?;
        }
        each_serde(&field.attrs, |name, value| {
            if name == "rename" {
                serde = Some(value.value());
            }
            Ok(())
        })?;
        let shape = shape.unwrap_or_default();
        refuse(
            shape == Shape::Skipped,
            required,
            "a skipped field is not in the spec, so it cannot be required",
        )?;
        refuse(
            matches!(shape, Shape::Nested | Shape::Each),
            secret,
            "mark the secret fields inside the nested config instead",
        )?;
        refuse(
            shape != Shape::Value || required.is_some(),
            former.as_ref().map(Ident::span),
            "only a value that the spec may leave out can have a former name",
        )?;
        let name = config.or(serde).unwrap_or_else(|| rename.apply(&ident.unraw().to_string()));
        Ok(Self { ident, name, shape, is_required: required.is_some(), is_secret: secret.is_some(), former })
    }
}

fn shape_of(meta: &ParseNestedMeta<'_>) -> Option<Shape> {
    let shapes = [("nested", Shape::Nested), ("each", Shape::Each), ("skip", Shape::Skipped)];
    shapes.into_iter().find(|(name, _)| meta.path.is_ident(name)).map(|(_, shape)| shape)
}

fn once<T>(meta: &ParseNestedMeta<'_>, place: &mut Option<T>, value: T) -> Result<()> {
    match place.replace(value) {
        Some(_) => Err(meta.error("this contradicts or repeats what was said before")),
        None => Ok(()),
    }
}

fn refuse(when: bool, said: Option<Span>, text: &str) -> Result<()> {
    said.filter(|_| when).map_or(Ok(()), |span| Err(Error::new(span, text)))
}

fn rule(text: &LitStr) -> Result<Rename> {
    let unknown = || Error::new(text.span(), format!("rename_all knows {}", Rename::known()));
    Rename::parse(&text.value()).ok_or_else(unknown)
}

/// What serde is told as `name = "value"`. Everything else is serde's own affair.
fn each_serde(attributes: &[Attribute], mut each: impl FnMut(&str, &LitStr) -> Result<()>) -> Result<()> {
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("serde")) {
        attribute.parse_nested_meta(|meta| {
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            if meta.input.peek(syn::token::Paren) {
                let content;
                syn::parenthesized!(content in meta.input);
                content.parse::<proc_macro2::TokenStream>().map(drop)
            } else if meta.input.peek(Token![=]) {
                let value = meta.value()?.parse::<syn::Expr>()?;
                match &value {
                    syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => each(&name, text),
                    _ => Ok(()),
                }
            } else {
                Ok(())
            }
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(code: &str, expected: &str) {
        let said = match Input::parse(&syn::parse_str(code).unwrap()) {
            Ok(input) => input.fields.into_iter().map(|field| field.name).collect::<Vec<_>>().join(" "),
            Err(error) => error.into_iter().map(|error| error.to_string()).collect::<Vec<_>>().join("\n"),
        };
        assert_eq!(said, expected, "{code}");
    }

    #[test]
    fn names_come_from_config_then_from_serde_then_from_the_rule() {
        let fields = r#"{ r#type: u8, log_level: u8, #[serde(rename = "q")] p: u8,
            #[config(rename = "d")] #[serde(rename = "c", default, with = "x", skip(a, b))] b: u8 }"#;
        check(&format!("#[config(spec = S)] struct C {fields}"), "type log_level q d");
        check(
            &format!("#[config(spec = S, rename_all = \"camelCase\")] struct C {fields}"),
            "type logLevel q d",
        );
        let serde = "#[serde(default, rename_all = \"kebab-case\")]";
        check(&format!("#[config(spec = S)] {serde} struct C {fields}"), "type log-level q d");
        let both = format!("#[config(spec = S, rename_all = \"PascalCase\")] {serde} struct C {fields}");
        check(&both, "Type LogLevel q d");
    }

    #[test]
    fn mistakes_are_told_all_at_once() {
        check("struct C { a: u8 }", "Config needs to know the spec: add #[config(spec = TheSpec)]");
        check("#[config(spec = S)] enum C { A }", "Config is derived for structs with named fields");
        check("#[config(spec = S)] struct C(u8);", "Config is derived for structs with named fields");
        check("#[config(default = 1)] struct C { a: u8 }", "config of a struct knows spec and rename_all");
        check(
            "#[config(spec = S)] struct C { #[config(default = 1)] a: u8, #[config(nested, each)] b: u8 }",
            "config of a field knows nested, each, required, secret, skip, rename and former\n\
             this contradicts or repeats what was said before",
        );
        check(
            "#[config(spec = S)] struct C { #[config(skip, required)] a: u8, #[config(nested, secret)] b: u8 }",
            "a skipped field is not in the spec, so it cannot be required\n\
             mark the secret fields inside the nested config instead",
        );
        check(
            "#[config(spec = S)] struct C { #[config(nested, former = b)] a: u8 }",
            "only a value that the spec may leave out can have a former name",
        );
        check(
            "#[config(spec = S, rename_all = \"camel\")] struct C { a: u8 }",
            "rename_all knows snake_case, lowercase, UPPERCASE, PascalCase, camelCase, SCREAMING_SNAKE_CASE, \
             kebab-case, SCREAMING-KEBAB-CASE",
        );
    }
}
