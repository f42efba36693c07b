// Package shared lets the processes of one user reach each other: clients a server that they
// share, and the command codex-mcp page every process that has an approvals page.
//
// Each such process listens on a unix socket in a [Folder] that only the user can enter. A
// relay connects a client on standard input and output with the server, see [Conn.Relay], and
// [Folder.Connect] starts the server if there is none.
//
// A connection begins with three lines of JSON: the server's greeting, the client's hello
// and the server's reply. What follows are the client's messages, unchanged. The socket
// has no token. The server instead asks the kernel who connects: it refuses another user,
// and every process that itself or one of its commands started, because such a process
// could answer its own questions. The client also asks the kernel who listens, and says nothing
// to a process that is not the one which the folder names: the hello has the client's
// environment, and a command may listen where it can write.
package shared
