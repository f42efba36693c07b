// Package codec reads and writes JSON for the generated types of mcptypes and
// of the packages below it. The generated code names the members; this package
// has everything else: what text is accepted, how an arm of a union is chosen,
// and which place an error names.
//
// A generated type T has two methods, decode and encode, which are passed as
// (*T).decode and (*T).encode.
package codec
