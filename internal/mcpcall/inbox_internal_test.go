package mcpcall

import "testing"

// TestUnread fills an inbox that nobody reads, with messages as long as they may be.
func TestUnread(t *testing.T) {
	params := make([]byte, 1<<20)
	for _, tt := range []struct {
		maxMessage, notes int
		fails             bool
	}{
		{0, 64, false}, {0, 65, true}, {32 << 20, 64, false}, {32 << 20, 65, true}, {128 << 20, 128, false}, {128 << 20, 129, true},
	} {
		b := newInbox(tt.maxMessage)
		for _, again := range []bool{false, true} { // what is taken makes room
			for range tt.notes {
				b.put(notification{params: params})
			}
			notes, err := b.take()
			if (err != nil) != tt.fails || !tt.fails && len(notes) != tt.notes {
				t.Errorf("with messages of %d bytes, again %t: %d notifications of %d, %v", tt.maxMessage, again, len(notes), tt.notes, err)
			}
		}
	}
}
