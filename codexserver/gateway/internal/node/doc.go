// Package node runs the workers of the users whose leases it holds:
//
//	front ── http ──▶ Node ── package lease
//	                       ── package workers ──▶ a worker
//
// A request reaches a worker only while the node holds the lease of its user, with the epoch
// that the front has put into the request. A front that has found that nobody holds the lease puts none into it: the node
// takes the lease first. When the lease is lost, the context of the requests ends first, and then the worker is killed.
package node
