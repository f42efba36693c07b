package native

import (
	"testing"

	"github.com/google/uuid"
)

func FuzzCursor(f *testing.F) {
	const id = "019a0000-0000-7000-8000-000000000001"
	for _, s := range []string{"", "|", "bogus", "2025-09-20T10-00-05|" + id, "2025-09-20T10:00:05Z|" + id, "2025-02-30T10-00-05|" + id, "2025-09-20T10-00-05.5|" + id, "2025-09-20T10-00-05|{" + id + "}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cursor, ok := parseCursor(text)
		if !ok {
			if cursor != "" {
				t.Errorf("%q became %q, which is not a cursor", text, cursor)
			}
			return
		}
		// A rollout with this name has this cursor, and the cursor parses to itself.
		if got := cursorOf("/sessions/rollout-" + cursor[:len(fileTime)] + "-" + cursor[len(fileTime)+1:] + ".jsonl"); got != cursor {
			t.Errorf("%q became %q, whose rollout has %q", text, cursor, got)
		}
		if again, ok := parseCursor(cursor); !ok || again != cursor {
			t.Errorf("%q became %q, which became %q", text, cursor, again)
		}
		if _, err := uuid.Parse(cursor[len(fileTime)+1:]); err != nil {
			t.Errorf("%q became %q: %v", text, cursor, err)
		}
	})
}
