package slots

import "testing"

// TestLimit counts for each key apart, and forgets those of which none is left.
func TestLimit(t *testing.T) {
	l := NewLimit(2, "limits.tasks: %d are unfinished")
	leaves := map[string][]func(){}
	for n, tt := range []struct {
		key       string
		goes, err bool
	}{
		{"ann", false, false}, {"ann", false, false}, {"ann", false, true}, {"bob", false, false}, {"ann", true, false}, {"ann", false, false},
		{"ann", false, true}, {"bob", true, false}, {"ann", true, false}, {"ann", true, false},
	} {
		if tt.goes {
			leave := leaves[tt.key][0]
			leaves[tt.key] = leaves[tt.key][1:]
			leave()
			leave()
			continue
		}
		leave, err := l.Enter(tt.key)
		if (err != nil) != tt.err || err != nil && err.Error() != "limits.tasks: 2 are unfinished" {
			t.Errorf("%d: %s: %v", n, tt.key, err)
		}
		if err == nil {
			leaves[tt.key] = append(leaves[tt.key], leave)
		}
	}
	if l.Busy() || len(l.now) > 0 {
		t.Errorf("left are %v", l.now)
	}
	var none *Limit
	if leave, err := none.Enter(""); err != nil {
		t.Error(err)
	} else {
		leave()
	}
}
