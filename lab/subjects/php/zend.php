<?php
// Zend Framework 1: its XML-RPC, SOAP, REST and HTTP client. It is never shipped: ZEND_PATH, or the factor zend, names the folder
// in which its folder Zend is.
declare(strict_types=1);

/** Finds the framework and loads what is needed of it. */
function zend_at(?string $path): void
{
    $path = $path ?: (string) getenv('ZEND_PATH');
    if ($path === '' || !is_file("$path/Zend/XmlRpc/Server.php")) {
        throw new RuntimeException("tables 3 to 5 not rerun: ZEND_PATH names no folder with Zend/XmlRpc/Server.php");
    }
    error_reporting(E_ALL & ~E_DEPRECATED); // It is older than much that is deprecated now.
    set_include_path($path);
    foreach (['XmlRpc/Server', 'XmlRpc/Request', 'XmlRpc/Response', 'Soap/Server', 'Soap/Client', 'Rest/Server', 'Rest/Client',
        'Http/Client', 'Version'] as $file) {
        require_once "Zend/$file.php";
    }
    require_once __DIR__ . '/zend_soap.php';
}

/** Posts by Zend's HTTP client; it gives no time of the first byte. */
final class ZendHttp
{
    private ?Zend_Http_Client $client = null;

    public function post(string $address, string $type, string $body, Stamps $stamps): string
    {
        $this->client ??= new Zend_Http_Client($address, ['keepalive' => true]);
        $answer = $this->client->setRawData($body, $type)->request('POST');
        $stamps->first = $stamps->end = hrtime(true);
        if ($answer->getStatus() !== 200) {
            throw new RuntimeException("answered {$answer->getStatus()}");
        }
        $stamps->bytes = strlen($answer->getBody());
        return $answer->getBody();
    }
}

/** XML-RPC by Zend. */
final class ZendXmlRpc implements Codec
{
    private ?Zend_XmlRpc_Server $server = null;
    private ?ZendWork $work = null;
    private ?ZendHttp $http = null;

    public function type(): string
    {
        return 'text/xml';
    }

    public function answer(string $op, string $body, callable $work): string
    {
        if ($this->server === null) {
            $this->work = new ZendWork();
            $this->server = new Zend_XmlRpc_Server();
            $this->server->setClass($this->work, 'lab');
        }
        $this->work->work = $work;
        $request = new Zend_XmlRpc_Request();
        $request->loadXml($body);
        return $this->server->handle($request)->saveXml();
    }

    public function ask(string $op, string $address, array $content, Stamps $stamps): array
    {
        $this->http ??= new ZendHttp();
        $body = (new Zend_XmlRpc_Request("lab.$op", [$content]))->saveXml();
        $stamps->serialized = hrtime(true);
        $response = new Zend_XmlRpc_Response();
        $response->loadXml($this->http->post($address, $this->type(), $body, $stamps));
        return $response->isFault() ? throw new RuntimeException($response->getFault()->getMessage()) : $response->getReturnValue();
    }
}

/** What Zend's XML-RPC server calls; it takes types from these comments. */
final class ZendWork
{
    /** @var callable */
    public $work;

    /**
     * @param struct $content
     * @return struct
     */
    public function echo($content)
    {
        return ($this->work)($content);
    }

    /**
     * @param struct $content
     * @return struct
     */
    public function sort($content)
    {
        return ($this->work)($content);
    }

    /**
     * @param struct $content
     * @return struct
     */
    public function array($content)
    {
        return ($this->work)($content);
    }

    /**
     * @param struct $content
     * @return struct
     */
    public function points($content)
    {
        return ($this->work)($content);
    }
}

/** REST by Zend: its server answers with the XML document that a method gives back, its client posts XML and reads it. */
final class ZendRest implements Codec
{
    private ?Zend_Rest_Server $server = null;
    private ?Zend_Rest_Client $client = null;

    public function type(): string
    {
        return 'application/xml';
    }

    public function answer(string $op, string $body, callable $work): string
    {
        if ($this->server === null) {
            $this->server = new Zend_Rest_Server();
            $this->server->returnResponse(true);
            $this->server->setClass('ZendRestWork');
        }
        ZendRestWork::$work = $work;
        return $this->server->handle(['method' => $op, 'body' => $body]);
    }

    public function ask(string $op, string $address, array $content, Stamps $stamps): array
    {
        if ($this->client === null) {
            Zend_Rest_Client::setHttpClient(new Zend_Http_Client(null, ['keepalive' => true]));
            $this->client = new Zend_Rest_Client($address);
        }
        $body = ZendRestWork::document($content)->saveXML();
        $stamps->serialized = hrtime(true);
        Zend_Rest_Client::getHttpClient()->setHeaders('Content-Type', $this->type());
        $answer = $this->client->restPost("/$op", $body);
        $stamps->first = $stamps->end = hrtime(true);
        $stamps->bytes = strlen($answer->getBody());
        return $answer->getStatus() === 200 ? Xml::content(Zend_Xml_Security::scan($answer->getBody()))
            : throw new RuntimeException("answered {$answer->getStatus()}");
    }
}

/** What Zend's REST server calls; it makes an object of this for each request. */
final class ZendRestWork
{
    /** @var callable */
    public static $work;

    /**
     * @param string $body
     * @return DOMDocument
     */
    public function echo($body)
    {
        return $this->answer($body);
    }

    /**
     * @param string $body
     * @return DOMDocument
     */
    public function sort($body)
    {
        return $this->answer($body);
    }

    /**
     * @param string $body
     * @return DOMDocument
     */
    public function array($body)
    {
        return $this->answer($body);
    }

    /**
     * @param string $body
     * @return DOMDocument
     */
    public function points($body)
    {
        return $this->answer($body);
    }

    private function answer(string $body): DOMDocument
    {
        return self::document((self::$work)(Xml::content(Zend_Xml_Security::scan($body))));
    }

    public static function document(array $content): DOMDocument
    {
        $document = new DOMDocument('1.0', 'UTF-8');
        $kind = array_key_first($content);
        $root = $document->appendChild($document->createElement($kind));
        if ($kind === 'payload') {
            $root->appendChild($document->createTextNode($content[$kind]));
            return $document;
        }
        foreach ($content[$kind] as $value) {
            $entry = $root->appendChild($document->createElement(Xml::ENTRIES[$kind]));
            if (!is_array($value)) {
                $entry->appendChild($document->createTextNode((string) $value));
                continue;
            }
            foreach ($value as $name => $field) {
                $entry->appendChild($document->createElement($name))->appendChild($document->createTextNode((string) $field));
            }
        }
        return $document;
    }
}
