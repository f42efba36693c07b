package jetstore

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// streamPrefix begins the names of streams. The user follows it.
const streamPrefix = "codexmcp_state_"

// Users returns the users of whom NATS keeps something, with those who are not configured any more.
func Users(ctx context.Context, js jetstream.JetStream) (users []string, err error) {
	all := js.StreamNames(ctx, jetstream.WithStreamListSubject("codexmcp.state.>"))
	for name := range all.Name() {
		if user, ok := strings.CutPrefix(name, streamPrefix); ok {
			users = append(users, user)
		}
	}
	return users, all.Err()
}

// Remove removes what NATS keeps of a user, and reports whether there was something. No writer may be
// left: one that opens the state later begins with what its home has.
func Remove(ctx context.Context, js jetstream.JetStream, user string) (removed bool, err error) {
	err = js.DeleteStream(ctx, streamPrefix+user)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return false, nil
	}
	return err == nil, err
}
