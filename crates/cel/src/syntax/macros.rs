//! Macros: calls that stand for larger expressions.

use super::parser::{Parser, global};
use super::{ACCUMULATOR, UNUSED_VARIABLE};
use crate::ast::{Comprehension, Entry, Expr, ExprKind, Id, Literal, operators};

/// How many nodes an expression may have after macros are expanded.
const NODES_MAX: usize = 500_000;

/// What is wrong with a macro's arguments, and where.
type Expansion = Result<Expr, (usize, String)>;

impl Parser {
    /// A call, or what the macro of that name stands for.
    pub(super) fn expand(&mut self, id: Id, name: String, target: Option<Expr>, args: Vec<Expr>) -> Expr {
        let at = self.offset(id);
        let expansion = match (target, name.as_str(), args.len()) {
            (None, "has", 1) => Macro { parser: self, at }.has(args),
            (Some(target), "all" | "exists" | "exists_one" | "existsOne", 2 | 3) => {
                Macro { parser: self, at }.quantifier(&name, target, args)
            }
            (Some(target), "map", 2 | 3) => Macro { parser: self, at }.map(target, args),
            (Some(target), "filter", 2) => Macro { parser: self, at }.filter(target, args),
            (Some(target), "transformList" | "transformMap" | "transformMapEntry", 3 | 4) => {
                Macro { parser: self, at }.transform(&name, target, args)
            }
            (Some(target), "sortBy", 2) => Macro { parser: self, at }.sort_by(target, args),
            (Some(target), "optMap" | "optFlatMap", 2) => {
                Macro { parser: self, at }.optional_map(&name, target, args)
            }
            (target, _, _) => {
                let target = target.map(Box::new);
                return Expr { id, kind: ExprKind::Call { function: name, target, args } };
            }
        };
        expansion.unwrap_or_else(|(at, message)| self.wrong(at, message))
    }
}

/// Builds the nodes of an expansion. They stand where the call does.
struct Macro<'p> {
    parser: &'p mut Parser,
    at: usize,
}

impl Macro<'_> {
    fn node(&mut self, kind: ExprKind) -> Expr {
        Expr { id: self.parser.id(self.at), kind }
    }

    fn literal(&mut self, literal: Literal) -> Expr {
        self.node(ExprKind::Literal(literal))
    }

    fn ident(&mut self, name: &str) -> Expr {
        self.node(ExprKind::Ident(name.to_owned()))
    }

    fn accumulator(&mut self) -> Expr {
        self.ident(ACCUMULATOR)
    }

    fn call(&mut self, function: &str, args: Vec<Expr>) -> Expr {
        global(self.parser.id(self.at), function, args)
    }

    fn member_call(&mut self, function: &str, target: Expr, args: Vec<Expr>) -> Expr {
        let target = Some(Box::new(target));
        self.node(ExprKind::Call { function: function.to_owned(), target, args })
    }

    fn list(&mut self, elements: Vec<Expr>) -> Expr {
        self.node(ExprKind::List { elements, optional: Vec::new() })
    }

    fn error<T>(&self, at: &Expr, message: &str) -> Result<T, (usize, String)> {
        Err((self.parser.offset(at.id), message.to_owned()))
    }

    /// The name that an argument is.
    fn variable(&self, argument: &Expr, otherwise: &str) -> Result<String, (usize, String)> {
        match &argument.kind {
            ExprKind::Ident(name) if matches!(name.as_str(), ACCUMULATOR | "__result__") => {
                self.error(argument, "iteration variable overwrites accumulator variable")
            }
            ExprKind::Ident(name) => Ok(name.clone()),
            _ => self.error(argument, otherwise),
        }
    }

    fn two_variables(&self, first: &Expr, second: &Expr) -> Result<(String, String), (usize, String)> {
        let name = "argument must be a simple name";
        let pair = (self.variable(first, name)?, self.variable(second, name)?);
        if pair.0 == pair.1 {
            return self.error(second, &format!("duplicate variable name: {}", pair.0));
        }
        Ok(pair)
    }

    fn has(&mut self, mut args: Vec<Expr>) -> Expansion {
        let argument = args.remove(0);
        match argument.kind {
            ExprKind::Select { operand, field, test: false } => {
                Ok(self.node(ExprKind::Select { operand, field, test: true }))
            }
            _ => self.error(&argument, "invalid argument to has() macro"),
        }
    }

    fn quantifier(&mut self, name: &str, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let (variable, variable2) = if let [first, second, _] = args.as_slice() {
            let (first, second) = self.two_variables(first, second)?;
            (first, Some(second))
        } else {
            (self.variable(&args[0], "argument must be a simple name")?, None)
        };
        let test = args.remove(args.len() - 1);
        let (init, condition, step, result);
        match name {
            "all" => {
                init = self.literal(Literal::Bool(true));
                let so_far = self.accumulator();
                condition = self.call(operators::NOT_STRICTLY_FALSE, vec![so_far]);
                let so_far = self.accumulator();
                step = self.call(operators::AND, vec![so_far, test]);
                result = self.accumulator();
            }
            "exists" => {
                init = self.literal(Literal::Bool(false));
                let so_far = self.accumulator();
                let not = self.call(operators::NOT, vec![so_far]);
                condition = self.call(operators::NOT_STRICTLY_FALSE, vec![not]);
                let so_far = self.accumulator();
                step = self.call(operators::OR, vec![so_far, test]);
                result = self.accumulator();
            }
            _ => {
                init = self.literal(Literal::Int(0));
                condition = self.literal(Literal::Bool(true));
                let (so_far, one) = (self.accumulator(), self.literal(Literal::Int(1)));
                let more = self.call(operators::ADD, vec![so_far, one]);
                let so_far = self.accumulator();
                step = self.call(operators::CONDITIONAL, vec![test, more, so_far]);
                let (so_far, one) = (self.accumulator(), self.literal(Literal::Int(1)));
                result = self.call(operators::EQUALS, vec![so_far, one]);
            }
        }
        let accumulator = ACCUMULATOR.to_owned();
        Ok(self.comprehension(Comprehension {
            range: target,
            variable,
            variable2,
            accumulator,
            init,
            condition,
            step,
            result,
        }))
    }

    fn comprehension(&mut self, parts: Comprehension) -> Expr {
        self.node(ExprKind::Comprehension(Box::new(parts)))
    }

    /// A loop that collects what `step` makes, for the items that `filter` accepts.
    fn collect(
        &mut self,
        range: Expr,
        (variable, variable2): (String, Option<String>),
        init: Expr,
        filter: Option<Expr>,
        step: Expr,
    ) -> Expr {
        let condition = self.literal(Literal::Bool(true));
        let step = match filter {
            None => step,
            Some(filter) => {
                let so_far = self.accumulator();
                self.call(operators::CONDITIONAL, vec![filter, step, so_far])
            }
        };
        let (accumulator, result) = (ACCUMULATOR.to_owned(), self.accumulator());
        self.comprehension(Comprehension {
            range,
            variable,
            variable2,
            accumulator,
            init,
            condition,
            step,
            result,
        })
    }

    /// `accumulator + [item]`
    fn append(&mut self, item: Expr) -> Expr {
        let so_far = self.accumulator();
        let item = self.list(vec![item]);
        self.call(operators::ADD, vec![so_far, item])
    }

    fn map(&mut self, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let variable = self.variable(&args[0], "argument is not an identifier")?;
        let item = args.remove(args.len() - 1);
        let filter = (args.len() == 2).then(|| args.remove(1));
        let init = self.list(Vec::new());
        let step = self.append(item);
        Ok(self.collect(target, (variable, None), init, filter, step))
    }

    fn filter(&mut self, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let variable = self.variable(&args[0], "argument is not an identifier")?;
        let filter = args.remove(1);
        let init = self.list(Vec::new());
        let step = self.append(args.remove(0));
        Ok(self.collect(target, (variable, None), init, Some(filter), step))
    }

    fn transform(&mut self, name: &str, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let (variable, variable2) = self.two_variables(&args[0], &args[1])?;
        let made = args.remove(args.len() - 1);
        let filter = (args.len() == 3).then(|| args.remove(2));
        let (init, step);
        if name == "transformList" {
            init = self.list(Vec::new());
            step = self.append(made);
        } else {
            init = self.node(ExprKind::Map(Vec::new()));
            let mut insert = vec![self.accumulator()];
            if name == "transformMap" {
                insert.push(self.ident(&variable));
            }
            insert.push(made);
            step = self.call(operators::MAP_INSERT, insert);
        }
        Ok(self.collect(target, (variable, Some(variable2)), init, filter, step))
    }

    /// A loop that runs zero times, in whose result `name` is `value`.
    fn bind(&mut self, name: &str, value: Expr, result: Expr) -> Expr {
        let range = self.list(Vec::new());
        let condition = self.literal(Literal::Bool(false));
        let step = self.ident(name);
        let variable = UNUSED_VARIABLE.to_owned();
        self.comprehension(Comprehension {
            range,
            variable,
            variable2: None,
            accumulator: name.to_owned(),
            init: value,
            condition,
            step,
            result,
        })
    }

    fn sort_by(&mut self, target: Expr, args: Vec<Expr>) -> Expansion {
        const INPUT: &str = "@__sortBy_input__";
        if matches!(target.kind, ExprKind::Literal(_) | ExprKind::Map(_) | ExprKind::Struct(_)) {
            return self.error(
                &target,
                "sortBy can only be applied to a list, identifier, comprehension, call or select expression",
            );
        }
        let input = self.ident(INPUT);
        let keys = self.map(input, args)?;
        let input = self.ident(INPUT);
        let sorted = self.member_call(operators::SORT_BY_KEYS, input, vec![keys]);
        Ok(self.bind(INPUT, target, sorted))
    }

    fn optional_map(&mut self, name: &str, target: Expr, mut args: Vec<Expr>) -> Expansion {
        let ExprKind::Ident(variable) = &args[0].kind else {
            let message = format!("{name}() variable name must be a simple identifier");
            return self.error(&args[0], &message);
        };
        let variable = variable.clone();
        let inner = args.remove(1);
        // Each of these macros doubles what it is called on, so a chain of them grows without bound.
        if count_nodes(&target).saturating_add(self.parser.id_count()) > NODES_MAX {
            return self.error(&args[0], &format!("expression exceeds {NODES_MAX} nodes after {name}()"));
        }
        let again = self.copy(&target);
        let is_there = self.member_call("hasValue", target, Vec::new());
        let value = self.member_call("value", again, Vec::new());
        let bound = self.bind(&variable, value, inner);
        let there = if name == "optMap" { self.call("optional.of", vec![bound]) } else { bound };
        let none = self.call("optional.none", Vec::new());
        Ok(self.call(operators::CONDITIONAL, vec![is_there, there, none]))
    }

    /// The same expression with ids of its own.
    fn copy(&mut self, expr: &Expr) -> Expr {
        let offset = self.parser.offset(expr.id);
        let id = self.parser.id(offset);
        let kind = match &expr.kind {
            ExprKind::Select { operand, field, test } => {
                ExprKind::Select { operand: Box::new(self.copy(operand)), field: field.clone(), test: *test }
            }
            ExprKind::Call { function, target, args } => ExprKind::Call {
                function: function.clone(),
                target: target.as_ref().map(|target| Box::new(self.copy(target))),
                args: args.iter().map(|argument| self.copy(argument)).collect(),
            },
            ExprKind::List { elements, optional } => ExprKind::List {
                elements: elements.iter().map(|element| self.copy(element)).collect(),
                optional: optional.clone(),
            },
            ExprKind::Map(entries) => {
                ExprKind::Map(entries.iter().map(|entry| self.copy_entry(entry)).collect())
            }
            ExprKind::Comprehension(parts) => ExprKind::Comprehension(Box::new(Comprehension {
                range: self.copy(&parts.range),
                variable: parts.variable.clone(),
                variable2: parts.variable2.clone(),
                accumulator: parts.accumulator.clone(),
                init: self.copy(&parts.init),
                condition: self.copy(&parts.condition),
                step: self.copy(&parts.step),
                result: self.copy(&parts.result),
            })),
            leaf @ (ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Struct(_)) => leaf.clone(),
        };
        Expr { id, kind }
    }

    fn copy_entry(&mut self, entry: &Entry) -> Entry {
        let offset = self.parser.offset(entry.id);
        Entry {
            id: self.parser.id(offset),
            key: self.copy(&entry.key),
            value: self.copy(&entry.value),
            optional: entry.optional,
        }
    }
}

fn count_nodes(expr: &Expr) -> usize {
    let all = |nodes: &[Expr]| nodes.iter().map(count_nodes).sum::<usize>();
    1 + match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Ident(_) | ExprKind::Struct(_) => 0,
        ExprKind::Select { operand, .. } => count_nodes(operand),
        ExprKind::Call { target, args, .. } => target.as_deref().map_or(0, count_nodes) + all(args),
        ExprKind::List { elements, .. } => all(elements),
        ExprKind::Map(entries) => {
            entries.iter().map(|entry| 1 + count_nodes(&entry.key) + count_nodes(&entry.value)).sum()
        }
        ExprKind::Comprehension(parts) => {
            [&parts.range, &parts.init, &parts.condition, &parts.step, &parts.result]
                .into_iter()
                .map(count_nodes)
                .sum()
        }
    }
}
