// Package front serves HTTP to the clients of all users:
//
//	client ──▶ Front: authenticates ── package link ──▶ the node of the user
//
// A front keeps no state of users, so a client can use any of them at any time: sessions and
// streams are those of the worker. It only remembers which node a user was on, until that node
// refuses a request.
package front
