package text_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/codexmcp/codexmcp/internal/text"
)

func TestSecrets(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
		values         []string
	}{
		{"none", "a text", "a text", nil},
		{"whole", "wrong key key-123456!", "wrong key [redacted]!", []string{"key-123456"}},
		{"twice", "key-123456key-123456", "[redacted][redacted]", []string{"key-123456"}},
		{"one contains the others", "wrong key hunter1 hunter2 hunter2-static", "wrong key [redacted]", []string{"hunter1", "hunter2", "hunter1 hunter2 hunter2-static"}},
		{"the shorter first", "is key-123456-more", "is [redacted]", []string{"key-123456", "key-123456-more"}},
		{"they overlap", "abcdefghijkl", "[redacted]", []string{"abcdefgh", "efghijkl"}},
		{"with itself", "xabababababy", "x[redacted]y", []string{"ababab"}},
		{"a scheme", "no TOKEN-123, no Bearer TOKEN-123", "no [redacted], no [redacted]", []string{"Bearer TOKEN-123"}},
		{"the text is cut", "wrong key key-12", "wrong key [redacted]", []string{"key-123456"}},
		{"the cut leaves little", "wrong key key", "wrong key key", []string{"key-123456"}},
		{"too short", "a 1 is no secret", "a 1 is no secret", []string{"1", "", "v1 x"}},
	} {
		must.Equal(t, tt.name, tt.want, text.NewSecrets(tt.values...).Hide(tt.in))
	}
}
