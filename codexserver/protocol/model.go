package protocol

// ModelList is the models that a conversation can be started with.
type ModelList struct {
	// Models are those that are known, the default first.
	Models []Model
	// Notes say what could not be found out, and where the list was cut.
	Notes []string
}

// Model is a model that can be chosen.
type Model struct {
	// Name is the model's slug.
	Name string
	// Profiles are the profiles of config.toml that choose it.
	Profiles []string
	// Description is for people; "" without one.
	Description string
	// Efforts are those that the model takes, nil when that is not known.
	Efforts []ReasoningEffort
	// DefaultEffort is that of a conversation that names none; "" when it is not known.
	DefaultEffort ReasoningEffort
	// IsDefault is true for the model of a conversation that names none.
	IsDefault bool
}
