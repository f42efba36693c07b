// Package codec reads and writes JSON for generated types: those of mcptypes and of the
// packages below it, and those that gen makes in other modules. The generated code has the
// names of members. This package has the rest: which text is accepted, how an arm of a union
// is chosen, and which place an error names.
//
// Programs call the Decode and Encode of the generated package. Of this package they need
// [DecodeError]; the rest is for generated code, and changes with it: generate again after an
// update of the module.
//
// A generated type T has two methods, decode and encode, which are passed as
// (*T).decode and (*T).encode.
package codec
