// Package appclient is a small client of `codex app-server`: threads, turns and approvals, with the
// types of package apptypes on a [jsonrpc.Peer].
//
//	c, err := appclient.Start(ctx, exec.Command("codex", "app-server"), &appclient.Options{Answers: appclient.Answers{Command: ask}})
//	if err != nil {
//		return err
//	}
//	defer c.Close()
//
// The program examples/appclient goes on from there. [New] connects over any transport; then [Client.Initialize] comes first. [Client.Call] calls the methods that have none here.
//
// # Approvals
//
// The app-server asks with requests, and the functions of [Answers] answer them, each on a goroutine of
// its own. Whatever is not a clear answer declines: no function, an error, and a context that has ended.
// The context of a question ends when the app-server no longer needs the answer: another client has
// answered, or the turn has ended. Look at the member Unknown of a question: what is in it, this
// package cannot show. Requests of other methods are refused. Codex counts an answer for the last question of a
// thread with the same ApprovalID, or else ItemID, which the model chooses: approve none of two that are open.
//
// # Versions
//
// The types are those of the newest supported Codex; others have fewer members. A Codex that is
// known to run things without asking is refused with a [*TooOldError].
//
// # What it does not do
//
// It makes no decision, writes no file and has no time limit but the contexts of its calls. The
// processes that Codex starts end when it does, not when this program is killed. Package appserver,
// which uses this one, has limits, ends processes, starts a new app-server after a crash, follows
// sub-agents, and has the words of the questions for a person.
package appclient
