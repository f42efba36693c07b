// Package codec reads and writes JSON for the generated types of mcptypes and of the packages below it.
// The generated code has the names of members. This package has the rest: which text is accepted, how
// an arm of a union is chosen, and which place an error names.
//
// A generated type T has two methods, decode and encode, which are passed as
// (*T).decode and (*T).encode.
package codec
