<?php
// Formats for subjects in PHP: JSON, XML, XML-RPC by ext-xmlrpc, SOAP by ext-soap.
declare(strict_types=1);

final class Json extends TextCodec
{
    public function type(): string
    {
        return 'application/json';
    }

    protected function write_request(string $op, array $content): string
    {
        return json_encode($content, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION);
    }

    protected function read_request(string $op, string $body): array
    {
        return json_decode($body, true, 16, JSON_THROW_ON_ERROR);
    }

    protected function write_answer(array $content): string
    {
        return $this->write_request('', $content);
    }

    protected function read_answer(string $body): array
    {
        return $this->read_request('', $body);
    }
}

/** XML: written by XMLWriter, read by SimpleXML, as the first benchmark of cai-2009 reads it. */
final class Xml extends TextCodec
{
    public const ENTRIES = ['numbers' => 'n', 'texts' => 't', 'objects' => 'object', 'points' => 'point'];

    public function type(): string
    {
        return 'application/xml';
    }

    protected function write_request(string $op, array $content): string
    {
        return $this->write_answer($content);
    }

    protected function read_request(string $op, string $body): array
    {
        return $this->read_answer($body);
    }

    protected function write_answer(array $content): string
    {
        $writer = new XMLWriter();
        $writer->openMemory();
        $writer->startDocument('1.0', 'UTF-8');
        $kind = array_key_first($content);
        $writer->startElement($kind);
        if ($kind === 'payload') {
            $writer->text($content[$kind]);
        } else {
            foreach ($content[$kind] as $entry) {
                $writer->startElement(self::ENTRIES[$kind]);
                if (is_array($entry)) {
                    foreach ($entry as $name => $field) {
                        $writer->writeElement($name, (string) $field);
                    }
                } else {
                    $writer->text((string) $entry);
                }
                $writer->endElement();
            }
        }
        $writer->endElement();
        return $writer->outputMemory();
    }

    protected function read_answer(string $body): array
    {
        return self::content(simplexml_load_string($body) ?: throw new InvalidArgumentException('no XML'));
    }

    protected function read_file(string $file): array
    {
        return self::content(simplexml_load_file($file) ?: throw new InvalidArgumentException('no XML'));
    }

    /** Takes content out of what SimpleXML read. */
    public static function content(SimpleXMLElement $root): array
    {
        $kind = $root->getName();
        if ($kind === 'payload') {
            return ['payload' => (string) $root];
        }
        $entries = [];
        foreach ($root->{self::ENTRIES[$kind]} as $entry) {
            $entries[] = match ($kind) {
                'numbers' => (int) $entry,
                'texts' => (string) $entry,
                'objects' => ['id' => (int) $entry->id, 'name' => (string) $entry->name, 'price' => (float) $entry->price],
                'points' => array_map('strval', (array) $entry),
            };
        }
        return [$kind => $entries];
    }
}

/** XML-RPC by ext-xmlrpc. */
final class XmlRpc extends TextCodec
{
    private const OPTIONS = ['encoding' => 'UTF-8', 'escaping' => ['markup'], 'verbosity' => 'no_white_space'];

    public function type(): string
    {
        return 'text/xml';
    }

    protected function write_request(string $op, array $content): string
    {
        return xmlrpc_encode_request("lab.$op", [$content], self::OPTIONS);
    }

    protected function read_request(string $op, string $body): array
    {
        $params = xmlrpc_decode_request($body, $method, 'UTF-8');
        return $method === "lab.$op" && isset($params[0]) ? $params[0] : throw new InvalidArgumentException("no $method");
    }

    protected function write_answer(array $content): string
    {
        return xmlrpc_encode_request(null, $content, self::OPTIONS);
    }

    protected function read_answer(string $body): array
    {
        $answer = xmlrpc_decode($body, 'UTF-8');
        return xmlrpc_is_fault($answer) ? throw new RuntimeException($answer['faultString']) : $answer;
    }

    public function answer(string $op, string $body, callable $work): string
    {
        try {
            return parent::answer($op, $body, $work);
        } catch (InvalidArgumentException $error) {
            return xmlrpc_encode_request(null, ['faultCode' => 4, 'faultString' => $error->getMessage()], self::OPTIONS);
        }
    }
}

/** SOAP 1.1 by ext-soap, with the description of the service in lab.wsdl. */
class Soap implements Codec
{
    public const WSDL = __DIR__ . '/lab.wsdl';
    public const OPTIONS = ['features' => SOAP_SINGLE_ELEMENT_ARRAYS, 'cache_wsdl' => WSDL_CACHE_NONE];
    private ?SoapServer $server = null;
    private ?TimedSoapClient $client = null;

    public function type(): string
    {
        return 'text/xml; charset=utf-8';
    }

    public function answer(string $op, string $body, callable $work): string
    {
        $this->server ??= new SoapServer(self::WSDL, self::OPTIONS);
        $this->server->setObject(new SoapWork($work));
        ob_start();
        try {
            $this->server->handle($body); // A fault of its own, as for bytes that are no XML, ends the script.
        } finally {
            $answer = ob_get_clean();
        }
        return $answer;
    }

    public function ask(string $op, string $address, array $content, Stamps $stamps): array
    {
        $this->client ??= new TimedSoapClient(self::WSDL, self::OPTIONS + ['location' => $address, 'keep_alive' => true]);
        $this->client->stamps = $stamps;
        return content_of($this->client->__soapCall($op, [wrapped($content)]));
    }
}

/** What SOAP's server calls: any operation. */
final class SoapWork
{
    public function __construct(public $work)
    {
    }

    public function __call(string $op, array $params): object
    {
        return wrapped(($this->work)(content_of($params[0])));
    }
}

/** ext-soap's own client and transport, with times around the transport: it gives no time of the first byte. */
final class TimedSoapClient extends SoapClient
{
    public Stamps $stamps;

    public function __doRequest(string $request, string $location, string $action, int $version, bool $oneWay = false): ?string
    {
        $this->stamps->serialized = hrtime(true);
        $answer = parent::__doRequest($request, $location, $action, $version, $oneWay);
        $this->stamps->first = $this->stamps->end = hrtime(true);
        $this->stamps->bytes = strlen((string) $answer);
        return $answer;
    }
}

/** Makes content what the description has inside the element of an operation. */
function wrapped(array $content): object
{
    $kind = array_key_first($content);
    return (object) [$kind => $kind === 'payload' ? $content[$kind] : [Xml::ENTRIES[$kind] => $content[$kind]]];
}

/** Takes content out of what ext-soap read. */
function content_of(object $wrapper): array
{
    foreach ((array) $wrapper as $kind => $value) {
        if ($kind === 'payload') {
            return ['payload' => $value];
        }
        $entries = (array) $value->{Xml::ENTRIES[$kind]} ?? [];
        $arrays = $kind === 'objects' || $kind === 'points';
        return [$kind => $arrays ? array_map(fn ($entry) => (array) $entry, $entries) : $entries];
    }
    throw new InvalidArgumentException('no content');
}
