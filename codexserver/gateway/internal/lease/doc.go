// Package lease decides which node runs the worker of a user, with two buckets of NATS JetStream:
//
//	front ── [Leases.Get] ──▶ nodes: process → what it is and has, renewed at a third of the time ◀── [Holder] of a node
//	                          users: user → process, written when the user comes and goes       ◀── [Holder.Take]
//
// The entry of a process among the nodes is its own lease. The server removes an entry that was not renewed for
// the bucket's TTL. Each entry has a term, the number with which it was made: a process that has lost its entry makes
// one with another term. The lease of a user names a process and its term, and holds as long as that entry. So an idle
// user costs NATS nothing.
//
// A node takes a free user by making the key. It takes the user of a process that has lost its entry by replacing
// exactly the value that names it. If the entry is missing, the node first makes one in its place, which only succeeds if
// no server has it any more; with it a process that is only slow finds that it has lost.
//
// A node that could not renew its entry calls [HolderOptions].Lost for all its users after two thirds of the TTL,
// counted from before the renewal was sent, so its workers end before another node can take the users.
// [HolderOptions].Renewed tells enclosures the same time, in case the process of the node is stopped. The clock of a
// node goes on while the machine is suspended.
//
// This assumes that Lost needs less than a third of the time, and that the clocks of NATS
// servers differ by less than what remains of it: after a change of the leader, another clock
// measures the age of a key.
//
// Every lease has an epoch, which is larger than that of all leases of the bucket before it. A front puts the
// epoch that it knows into each request, and a node refuses a request with any other epoch than
// its own ([Holder.Hold]). If nobody holds the lease, the front sends the request to a node that takes it.
package lease
