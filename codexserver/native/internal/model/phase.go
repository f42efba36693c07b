package model

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// phase is what an attempt waits for now. The zero phase is connecting.
type phase struct{ now atomic.Int32 }

const (
	connecting = iota
	shakingHands
	awaitingAnswer
	streaming
)

// trace returns a context whose request updates the phase.
func (p *phase) trace(ctx context.Context) context.Context {
	p.now.Store(connecting)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { p.now.Store(shakingHands) },
		TLSHandshakeDone:  func(tls.ConnectionState, error) { p.now.Store(connecting) },
		GotConn:           func(httptrace.GotConnInfo) { p.now.Store(awaitingAnswer) },
	})
}

// silence returns the error for a provider that was silent in this phase.
func (p *phase) silence(idle time.Duration) error {
	switch p.now.Load() {
	case connecting:
		return &ConnectError{Err: &noConnectionError{idle}}
	case shakingHands:
		return &ConnectError{Err: fmt.Errorf("the TLS handshake was not finished within %v", idle)}
	case awaitingAnswer:
		return &ConnectError{Err: fmt.Errorf("no answer within %v", idle)}
	}
	return broken("idle timeout waiting for SSE")
}

// noConnectionError reports that there was no connection in a time.
type noConnectionError struct{ within time.Duration }

func (e *noConnectionError) Error() string { return fmt.Sprintf("no connection within %v", e.within) }
