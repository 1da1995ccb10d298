"""The root of all errors that are the user's to mend.

InputError                     exit code 2: one line with the value, what is legal, and the remedy
├── data.space.SpaceError          a state or description that does not fit a space
├── data.corpora.CorpusError       a file that is not a corpus
├── data.checkpoints.CheckpointError   no such checkpoint, a damaged one, or one that does not fit
├── data.digests.DigestError        a shipped file that is not the one its manifest names
├── data.store.StoreError          a run folder that cannot be written or belongs to another run
│   └── data.store.BusyError            one that another process is writing
├── domains.base.DesignError       a design, or a file that should hold one, is not valid
├── rewards.base.RewardError       parameters a reward cannot work with
├── generators.base.GeneratorError something a generator cannot do
├── app.plugins.PluginError        no such plug-in or parameter
└── app.spec.SpecError             a key or value of a run that is not legal
"""


class InputError(ValueError):
    """What was asked for cannot be done as asked; the message is one line that says what can."""
