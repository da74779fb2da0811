//! `json!`.

/// A [`Value`](crate::Value) from a literal, as `serde_json::json!` takes it: whatever is no literal is an expression whose value
/// serialises, or is a `Value` itself.
#[macro_export]
macro_rules! json {
    ($($json:tt)+) => {
        $crate::json_internal!($($json)+)
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! json_internal {
    // Elements of an array: what is done, then what is left.
    (@array [$($done:expr,)*]) => { $crate::Array::from([$($done,)*]) };
    (@array [$($done:expr),*]) => { $crate::Array::from([$($done),*]) };
    (@array [$($done:expr,)*] null $($rest:tt)*) => {
        $crate::json_internal!(@array [$($done,)* $crate::json_internal!(null)] $($rest)*)
    };
    (@array [$($done:expr,)*] [$($array:tt)*] $($rest:tt)*) => {
        $crate::json_internal!(@array [$($done,)* $crate::json_internal!([$($array)*])] $($rest)*)
    };
    (@array [$($done:expr,)*] {$($map:tt)*} $($rest:tt)*) => {
        $crate::json_internal!(@array [$($done,)* $crate::json_internal!({$($map)*})] $($rest)*)
    };
    (@array [$($done:expr,)*] $next:expr, $($rest:tt)*) => {
        $crate::json_internal!(@array [$($done,)* $crate::json_internal!($next),] $($rest)*)
    };
    (@array [$($done:expr,)*] $last:expr) => {
        $crate::json_internal!(@array [$($done,)* $crate::json_internal!($last)])
    };
    (@array [$($done:expr),*] , $($rest:tt)*) => {
        $crate::json_internal!(@array [$($done,)*] $($rest)*)
    };

    // How many commas a token is: an object has a field more than it has commas, or as many.
    (@comma ,) => { 1 };
    (@comma $other:tt) => { 0 };

    // Fields of an object: the name so far, what is left, and a copy of that for messages.
    (@object $object:ident () () ()) => {};
    (@object $object:ident [$($name:tt)+] ($value:expr) , $($rest:tt)*) => {
        let _ = $object.insert($($name)+, $value);
        $crate::json_internal!(@object $object () ($($rest)*) ($($rest)*));
    };
    (@object $object:ident [$($name:tt)+] ($value:expr)) => {
        let _ = $object.insert($($name)+, $value);
    };
    (@object $object:ident ($($name:tt)+) (: null $($rest:tt)*) $copy:tt) => {
        $crate::json_internal!(@object $object [$($name)+] ($crate::json_internal!(null)) $($rest)*);
    };
    (@object $object:ident ($($name:tt)+) (: [$($array:tt)*] $($rest:tt)*) $copy:tt) => {
        $crate::json_internal!(@object $object [$($name)+] ($crate::json_internal!([$($array)*])) $($rest)*);
    };
    (@object $object:ident ($($name:tt)+) (: {$($map:tt)*} $($rest:tt)*) $copy:tt) => {
        $crate::json_internal!(@object $object [$($name)+] ($crate::json_internal!({$($map)*})) $($rest)*);
    };
    (@object $object:ident ($($name:tt)+) (: $value:expr, $($rest:tt)*) $copy:tt) => {
        $crate::json_internal!(@object $object [$($name)+] ($crate::json_internal!($value)), $($rest)*);
    };
    (@object $object:ident ($($name:tt)+) (: $value:expr) $copy:tt) => {
        $crate::json_internal!(@object $object [$($name)+] ($crate::json_internal!($value)));
    };
    (@object $object:ident () (($name:expr) : $($rest:tt)*) $copy:tt) => {
        $crate::json_internal!(@object $object ($name) (: $($rest)*) (: $($rest)*));
    };
    (@object $object:ident ($($name:tt)*) ($next:tt $($rest:tt)*) $copy:tt) => {
        $crate::json_internal!(@object $object ($($name)* $next) ($($rest)*) ($($rest)*));
    };

    (null) => { $crate::Value::Null };
    (true) => { $crate::Value::Bool(true) };
    (false) => { $crate::Value::Bool(false) };
    ([]) => { $crate::Value::Array($crate::Array::new()) };
    ([ $($array:tt)+ ]) => { $crate::Value::Array($crate::json_internal!(@array [] $($array)+)) };
    ({}) => { $crate::Value::Object($crate::Map::new()) };
    ({ $($map:tt)+ }) => {
        $crate::Value::Object({
            let mut object = $crate::Map::with_capacity(1 $(+ $crate::json_internal!(@comma $map))+);
            $crate::json_internal!(@object object () ($($map)+) ($($map)+));
            object
        })
    };
    ($other:expr) => {{
        #[allow(unused_imports, reason = "each expression needs one of the two")]
        use $crate::private::{Serialised as _, Shared as _};
        $crate::private::Expression(&$other).written()
    }};
}
