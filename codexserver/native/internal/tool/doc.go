// Package tool holds the tools that a model may call: running commands, applying patches,
// keeping a plan, looking at an image.
//
//	Toolbox.Offer() ──▶ what the model can call
//	Toolbox.Turn(Context).Call(ctx, Call) ──▶ Result
//
// A [Toolbox] belongs to a conversation, and remembers what the user approved for all of
// it. A [Turn] has the folder and the policies of one turn. Package decide decides about a
// call. If necessary the host asks the user. The call emits events and returns a text for
// the model, which also reports the model's mistakes. An error ends the turn.
package tool
