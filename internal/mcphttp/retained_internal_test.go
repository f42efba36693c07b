package mcphttp

import "testing"

// TestRetainedAfterReader lets a client leave that has read everything: what it had kept from being dropped meanwhile is
// dropped then, also if no other event comes. Of an exchange nothing is kept that was read.
func TestRetainedAfterReader(t *testing.T) {
	for _, only := range []bool{false, true} {
		s := &session{handler: &Handler{}}
		s.handler.o.MaxRetained = 10_000
		me := &reader{}
		st := &stream{session: s, reader: me}
		most := s.handler.o.MaxRetained
		if only {
			s.only, most = st, 1000+overhead
		}
		for range 100 {
			st.add(make([]byte, 1000), false)
		}
		if len(s.out.kept) != 100 {
			t.Fatalf("of the events that the client is about to read, %d are kept", len(s.out.kept))
		}
		me.read = st.last
		if st.add(make([]byte, 1000), false); only && len(s.out.kept) != 1 {
			t.Errorf("of an exchange %d events are kept", len(s.out.kept))
		}
		me.read = st.last
		s.detach(st, me)
		if s.out.keptBytes > most || len(s.out.kept) == 0 {
			t.Errorf("%d bytes are kept, of %d events", s.out.keptBytes, len(s.out.kept))
		}
	}
}
