package mcp

import (
	"context"

	"github.com/codexmcp/codexmcp/jsonrpc"
)

const (
	// maxLong is how many requests that may take long are handled at a time. More are
	// refused, because they would wait for calls that may never end.
	maxLong = 4096
	// spare is how many other requests are handled at a time.
	spare = 1024
)

// LegacyMaxConcurrent is how many requests of a session are handled at a time.
const LegacyMaxConcurrent = maxLong + spare

// Enter counts a request that may take long, and fails if too many are handled. After a success
// the caller must call leave.
func (ss *LegacySession) Enter() (leave func(), err error) {
	if !ss.long.enter(maxLong) {
		return nil, jsonrpc.Errorf(jsonrpc.CodeOverloaded, "overloaded: "+tooMany, maxLong)
	}
	return ss.long.leave, nil
}

// Limited returns the handler of a method that may take long. It counts the method's requests.
func (ss *LegacySession) Limited(h jsonrpc.Handler) jsonrpc.Handler {
	return jsonrpc.HandlerFunc(func(ctx context.Context, r *jsonrpc.Request) (any, error) {
		if r.IsNotification() {
			return h.ServeRPC(ctx, r)
		}
		leave, err := ss.Enter()
		if err != nil {
			return nil, err
		}
		defer leave()
		return h.ServeRPC(ctx, r)
	})
}
