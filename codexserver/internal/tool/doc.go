// Package tool holds the tools that a model may call: running commands, applying patches,
// keeping a plan, looking at an image.
//
//	Toolbox.Offer() ──▶ what the model can call
//	Toolbox.Turn(Context).Call(ctx, Call) ──▶ Result
//
// A [Toolbox] belongs to a conversation and remembers what the user approved for all of
// it. A [Turn] carries what holds for one turn. A call decides by package policy, asks
// the host where it must, reports what happens as events, and returns a text to the
// model. What the model did wrong is in that text; an error means that the turn is over.
package tool
