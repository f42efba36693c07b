// Package bench compares mcptypes with the types of other Go libraries. It is a
// module of its own, so that they stay out of the project's.
package bench
