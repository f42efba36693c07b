// Package hosts is the network of a command in a sandbox: an HTTP proxy that lets it reach the hosts that were allowed,
// and no other.
//
//	socket of the command ──▶ Network.Serve ──▶ Decide(host) ──▶ Proxy ──▶ the host's port 443
//
// A [Network] is that of one command, which is known by the socket that it uses: there is no port, and no password. It
// understands CONNECT to port 443 alone. Each host is decided once for a command, whatever the answer, because programs
// try several times and do not wait for a person; attempts meanwhile wait for the same answer.
//
// A name is resolved only after it was allowed, since a name server learns it, and is a message by itself. An address of
// this machine, of a private network or of a metadata service is refused, so that no name leads there. What is dialled is
// the address that was looked at. Where the server has a proxy of its own, the name goes there unresolved, and that proxy
// decides what it leads to.
//
// What a refusal says is in the status line, because most programs print nothing else.
package hosts
