package mcphttp

import "testing"

// TestRetainedAfterReader lets a client leave that has read everything: what it had kept from being dropped meanwhile is
// dropped then, also if no other event comes.
func TestRetainedAfterReader(t *testing.T) {
	s := &session{handler: &Handler{}}
	s.handler.o.MaxRetained = 10_000
	me := &reader{}
	st := &stream{session: s, reader: me}
	for range 100 {
		st.add(make([]byte, 1000), false)
	}
	if len(s.out.kept) != 100 {
		t.Fatalf("of the events that the client is about to read, %d are kept", len(s.out.kept))
	}
	me.read = st.last
	s.detach(st, me)
	if s.out.keptBytes > 10_000 || len(s.out.kept) == 0 {
		t.Errorf("%d bytes are kept, of %d events", s.out.keptBytes, len(s.out.kept))
	}
}
