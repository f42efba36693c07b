package jetstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// streamPrefix begins the names of streams. The user follows it.
const streamPrefix = "codexmcp_state_"

// allSubjects are those of all users.
const allSubjects = "codexmcp.state.>"

// Streams returns the names of the streams of all users, in order.
func Streams(ctx context.Context, js jetstream.JetStream) (names []string, err error) {
	all := js.StreamNames(ctx, jetstream.WithStreamListSubject(allSubjects))
	for name := range all.Name() {
		if strings.HasPrefix(name, streamPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, all.Err()
}

// Kept returns how many bytes NATS keeps of each user, with those who are not configured any more.
func Kept(ctx context.Context, js jetstream.JetStream) (map[string]uint64, error) {
	all := js.ListStreams(ctx, jetstream.WithStreamListSubject(allSubjects))
	kept := map[string]uint64{}
	for info := range all.Info() {
		if user, ok := strings.CutPrefix(info.Config.Name, streamPrefix); ok {
			kept[user] = info.State.Bytes
		}
	}
	return kept, all.Err()
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
