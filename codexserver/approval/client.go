package approval

import "context"

// withoutQuestions is the context's key that [WithoutQuestions] sets.
type withoutQuestions struct{}

// WithoutQuestions returns a context for the methods Serve and Exchange of a principal of
// package codexserver whose client may not approve. The client is not asked, whatever it
// declares. The server's options decide its questions, as for a client that cannot show forms.
func WithoutQuestions(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutQuestions{}, true)
}

// MayAsk reports whether the client of a context may be asked.
func MayAsk(ctx context.Context) bool { return ctx.Value(withoutQuestions{}) == nil }
