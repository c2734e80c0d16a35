<?php
// LSP-1 and what is asked by it (docs/lab/your-own-service.md): the part that all subjects in PHP share.
declare(strict_types=1);

const FIELDS = ['id', 'name', 'category', 'description', 'address', 'city', 'country',
    'latitude', 'longitude', 'hours', 'phone', 'website', 'picture'];
const FIELD_LETTERS = [6, 24, 12, 334, 32, 16, 12, 10, 10, 40, 16, 40, 48];
const ENTRIES_MAX = 100000;

/** Numbers and letters from a seed. */
final class Source
{
    private int $state;

    public function __construct(int $seed)
    {
        $this->state = $seed % 2 ** 31;
    }

    public function number(): int
    {
        $this->state = (1103515245 * $this->state + 12345) % 2 ** 31;
        return intdiv($this->state, 65536);
    }

    public function letters(int $count): string
    {
        for ($letters = ''; $count > 0; $count--) {
            $letters .= chr(97 + $this->number() % 26);
        }
        return $letters;
    }

    public function item(): array
    {
        return ['id' => $this->number(), 'name' => $this->letters(10), 'price' => $this->number() / 4.0];
    }

    public function point(): array
    {
        return array_combine(FIELDS, array_map($this->letters(...), FIELD_LETTERS));
    }
}

/** Makes the request of a cell: content is an array of one field, named after its kind. */
function request_of(string $op, array $factors, int $seed): array
{
    $source = new Source($seed);
    $items = (int) ($factors['items'] ?? 20);
    return match ($op) {
        'echo' => ['payload' => $source->letters((int) ($factors['payload'] ?? 64))],
        'sort' => ['numbers' => numbers($source, $items)],
        'array' => ['payload' => ($factors['type'] ?? 'Int') . " $items $seed"],
        'points' => ['payload' => 'Point ' . ($factors['poi'] ?? 3) . " $seed"],
    };
}

/** Gives the points that are asked for at a time, 0 for all, and the exchanges that bring all points. */
function paging(array $factors): array
{
    $page = (int) ($factors['page'] ?? 0);
    return [$page, $page > 0 ? max(intdiv((int) ($factors['poi'] ?? 3) + $page - 1, $page), 1) : 1];
}

/** Makes the request number $seq of a run; pages of points follow each other, and begin anew after the last. */
function request_number(string $op, array $factors, int $base, int $seq): array
{
    [$page, $pages] = paging($factors);
    if ($op !== 'points' || $page === 0) {
        return request_of($op, $factors, $base + $seq);
    }
    $from = $seq % $pages * $page;
    return ['payload' => 'Point ' . min($page, (int) ($factors['poi'] ?? 3) - $from) . " $base $from"];
}

function numbers(Source $source, int $count): array
{
    return $count > 0 ? array_map(fn () => $source->number(), range(1, $count)) : [];
}

/** Does what a server has to do. */
function answer_to(string $op, array $request): array
{
    if ($op === 'echo') {
        return $request;
    }
    if ($op === 'sort') {
        $sorted = $request['numbers'] ?? throw new InvalidArgumentException('numbers are wanted');
        sort($sorted);
        return ['numbers' => $sorted];
    }
    [$kind, $count, $seed] = explode(' ', $request['payload']);
    if ((int) $count > ENTRIES_MAX) {
        throw new InvalidArgumentException('too many entries');
    }
    $source = new Source((int) $seed);
    $each = fn (callable $make) => (int) $count > 0 ? array_map(fn () => $make(), range(1, (int) $count)) : [];
    return match ($kind) {
        'Int' => ['numbers' => $each($source->number(...))],
        'String' => ['texts' => $each(fn () => $source->letters(10))],
        'Object' => ['objects' => $each($source->item(...))],
        'Point' => ['points' => $each($source->point(...))],
    };
}

/** FNV-1a of 64 bits over the fields of all answers; it hashes 16 bits at a time to stay within PHP's integers. */
final class Digest
{
    private array $words = [0x2325, 0x8422, 0x9ce4, 0xcbf2];

    public function add(array $content): void
    {
        foreach ($content as $kind => $entries) {
            foreach ((array) $entries as $entry) {
                foreach ($kind === 'points' ? FIELDS : ($kind === 'objects' ? ['id', 'name', 'price'] : [null]) as $name) {
                    $field = $name === null ? $entry : $entry[$name];
                    $this->field((string) ($name === 'price' ? (int) round($field * 4) : $field));
                }
            }
        }
    }

    private function field(string $text): void
    {
        [$a, $b, $c, $d] = $this->words;
        foreach (unpack('C*', "$text\n") as $byte) {
            $a ^= $byte; // times 2^40 + 0x1b3
            $e = $a * 0x1b3;
            $f = $b * 0x1b3 + ($e >> 16);
            $g = $c * 0x1b3 + ($a << 8) + ($f >> 16);
            $d = ($d * 0x1b3 + ($b << 8) + ($g >> 16)) & 0xffff;
            [$a, $b, $c] = [$e & 0xffff, $f & 0xffff, $g & 0xffff];
        }
        $this->words = [$a, $b, $c, $d];
    }

    public function hex(): string
    {
        return vsprintf('%04x%04x%04x%04x', array_reverse($this->words));
    }
}

/** Packs a sample of 64 bytes: a number and six times, status, flags, bytes. */
function sample(int $seq, array $times, int $status, int $bytes): string
{
    return pack('P7v2V', $seq, ...array_pad($times, 6, 0), ...[$status, 0, $bytes]);
}

/** How content travels. */
interface Codec
{
    /** Gives the content type. */
    public function type(): string;

    /** Answers a request; the work takes content and gives content. */
    public function answer(string $op, string $body, callable $work): string;

    /** Asks the server at an address; stamps get t_ser_end, t_first_byte, t_end, and the bytes that came. */
    public function ask(string $op, string $address, array $content, Stamps $stamps): array;
}

/** The times of an exchange, as its client takes them. */
final class Stamps
{
    public int $serialized = 0;
    public int $first = 0;
    public int $end = 0;
    public int $bytes = 0;
}

/** Points as rows of the SQLite file that the factor insert names; the tables are those of docs/lab/your-own-service.md. */
final class Rows
{
    private SQLite3 $file;
    private SQLite3Stmt $point;
    private SQLite3Stmt $note;
    private int $page;
    private int $pages;

    public function __construct(private array $factors)
    {
        [$this->page, $this->pages] = paging($factors);
        $this->file = new SQLite3($factors['insert']);
        $this->file->enableExceptions(true);
        $this->file->busyTimeout(5000); // Others may look into the file.
        $fields = implode(', ', array_map(fn (string $name): string => "$name TEXT NOT NULL", FIELDS));
        $this->file->exec("CREATE TABLE IF NOT EXISTS points (number INTEGER PRIMARY KEY, $fields)");
        $this->file->exec('CREATE TABLE IF NOT EXISTS sync (one INTEGER PRIMARY KEY CHECK (one = 1), pages INTEGER NOT NULL,'
            . ' complete INTEGER NOT NULL)');
        $this->file->exec('INSERT OR IGNORE INTO sync VALUES (1, 0, 0)');
        $places = implode(', ', array_fill(0, count(FIELDS) + 1, '?'));
        $this->point = $this->file->prepare("INSERT OR REPLACE INTO points VALUES ($places)");
        $this->note = $this->file->prepare('UPDATE sync SET pages = ?, complete = ?');
    }

    /** Gives the number of the exchange to begin with: with sync=resume the page after the last one that is there. */
    public function first(): int
    {
        $resume = ($this->factors['sync'] ?? '') === 'resume';
        return $resume ? $this->file->querySingle('SELECT CASE WHEN complete THEN 0 ELSE pages END FROM sync') : 0;
    }

    /** Keeps a page and the note that it is there, all or nothing, and gives the time. */
    public function keep(int $seq, array $points): int
    {
        $this->file->exec('BEGIN');
        try {
            foreach ($points as $at => $point) {
                $this->point->bindValue(1, $seq % $this->pages * $this->page + $at, SQLITE3_INTEGER);
                foreach (FIELDS as $place => $name) {
                    $this->point->bindValue($place + 2, $point[$name], SQLITE3_TEXT);
                }
                $this->point->execute();
            }
            $page = $seq % $this->pages + 1;
            $this->note->bindValue(1, $page, SQLITE3_INTEGER);
            $this->note->bindValue(2, (int) ($page === $this->pages), SQLITE3_INTEGER);
            $this->note->execute();
            $this->file->exec('COMMIT');
        } catch (Throwable $error) {
            $this->file->exec('ROLLBACK');
            throw $error;
        }
        return hrtime(true);
    }
}

/** The asking half. */
final class Asking
{
    private array $arm = [];
    private array $factors;
    private ?Rows $rows;
    private string $address;

    public function __construct(private Codec $codec, private array $order)
    {
        $this->factors = $order['factors'] ?? [];
        $this->rows = $order['op'] === 'points' && isset($this->factors['insert']) ? new Rows($this->factors) : null;
        $scheme = ($this->factors['tls'] ?? '') === 'on' ? 'https' : 'http';
        $this->address = "$scheme://{$order['target']}/{$order['op']}";
    }

    public function arm(array $order): void
    {
        $this->arm = $order;
    }

    public function go(int $begin): array
    {
        $first = max($begin, hrtime(true));
        $schedule = $this->arm['schedule'];
        [$digest, $samples, $errors, $inserted] = [new Digest(), '', 0, ''];
        $from = min($this->rows?->first() ?? 0, $this->arm['count']);
        for ($seq = $from; $seq < $this->arm['count']; $seq++) {
            $open = $schedule['kind'] === 'open';
            $intended = $open ? $first + ($seq - $from) * $schedule['interval_ns'] : hrtime(true);
            pause($intended - hrtime(true));
            try {
                [$sample, $kept] = $this->exchange($seq, $intended, $digest);
                $samples .= $sample;
                $inserted .= pack('P', $kept);
            } catch (Throwable $error) {
                fwrite(STDERR, "$error\n");
                $errors++;
                $samples .= sample($seq, [$intended], 1, 0);
                $inserted .= pack('P', 0);
            }
            pause($schedule['think_ns'] ?? 0);
        }
        file_put_contents($this->arm['out'], $samples);
        $this->rows === null ?: file_put_contents($this->arm['out'] . '.inserted', $inserted);
        $n = $this->arm['count'] - $from - $errors;
        return ['report' => 'done', 'n' => $n, 'errors' => $errors, 'digest' => $digest->hex()];
    }

    /** Gives the sample, and when rows were kept, if they were. */
    private function exchange(int $seq, int $intended, Digest $digest): array
    {
        ['op' => $op, 'seed' => $seed] = $this->order;
        $request = request_number($op, $this->factors, $seed, $seq);
        $stamps = new Stamps();
        $start = hrtime(true);
        $answer = $this->codec->ask($op, $this->address, $request, $stamps);
        $times = [$intended, $start, $stamps->serialized, $stamps->first, $stamps->end, hrtime(true)];
        $kept = $this->rows?->keep($seq, $answer['points']) ?? 0;
        $digest->add($answer);
        return [sample($seq, $times, 0, $stamps->bytes), $kept];
    }

    public function stop(): array
    {
        return ['report' => 'done', 'n' => 0, 'errors' => 0, 'digest' => ''];
    }
}

function pause(int $nanoseconds): void
{
    if ($nanoseconds > 0) {
        usleep(intdiv($nanoseconds, 1000));
    }
}

/** Follows orders until told to stop; a server answers its clients in between. */
function speak(callable $codec, array $versions): void
{
    $half = null;
    while (true) {
        $half instanceof Answering ? $half->until_ordered(STDIN) : null;
        $line = fgets(STDIN);
        $order = $line === false ? ['order' => 'stop'] : json_decode($line, true, 16, JSON_THROW_ON_ERROR);
        try {
            $report = follow($order, $half, $codec, $versions);
        } catch (Throwable $error) {
            $report = ['report' => 'error', 'text' => $error->getMessage()];
        }
        if ($report !== null) {
            fwrite(STDOUT, json_encode($report) . "\n");
        }
        if ($order['order'] === 'stop') {
            return;
        }
    }
}

function follow(array $order, Asking|Answering|null &$half, callable $codec, array $versions): ?array
{
    switch ($order['order']) {
        case 'hello':
            $versions += ['php' => PHP_VERSION];
            return ['report' => 'hello', 'lsp' => 1, 'versions' => $versions, 'clock' => 'CLOCK_MONOTONIC'];
        case 'prepare':
            $codec = $codec($order['factors'] ?? []);
            $half = $order['role'] === 'server' ? new Answering($codec, $order) : new Asking($codec, $order);
            return ['report' => 'ready', 'port' => $half instanceof Answering ? $half->port() : 0];
        case 'arm':
            $half->arm($order);
            return ['report' => 'armed'];
        case 'go':
            return $half instanceof Asking ? $half->go($order['t0_ns']) : null;
        default:
            return $half?->stop() ?? ['report' => 'done', 'n' => 0, 'errors' => 0, 'digest' => ''];
    }
}
