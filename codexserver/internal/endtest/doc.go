// Package endtest ends servers while their agent works, and checks that nothing of them is
// left. The engines' tests use it on Linux.
package endtest
