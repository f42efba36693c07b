// Package endtest ends servers while their agent works, and looks for what is
// left of them. It is for the tests of the engines, on Linux.
package endtest
