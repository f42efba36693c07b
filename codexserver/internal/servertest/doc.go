// Package servertest has what tests of the server share: an engine, a desk, a client and
// answers to questions. The model provider of tests is package providertest.
//
// It does not import the server, so that tests of every package below it can use it.
package servertest
