// Package jsonrpc is a JSON-RPC 2.0 peer for any protocol over any transport.
// Both ends of a connection are equal: each may call and be called.
package jsonrpc
